/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Exports of a timeline that anybody may have written: chunks past the checksums of a recording, as in profile.c, are put
 * into a recording of their own, which every exporter that writes a stream then goes over.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/die.h"
#include "tools/export/trace.h"
#include "tools/store/recording_write.h"
#include "tools/store/steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

#define STEP_NS 1000 /* the second export's window begins there */

/* All that exporters take from the file; the rest is the profile's. */
static void append_timeline(struct recording_file *file, const Torsh__Chunk *chunk)
{
	Torsh__Chunk timeline = TORSH__CHUNK__INIT;

	timeline.n_timeline = chunk->n_timeline;
	timeline.timeline = chunk->timeline;
	if (timeline.n_timeline)
		torsh_recording_append(file, &timeline, RECORDING_LAST);
}

/* Each behind its length in two bytes. */
static void read_chunks(const uint8_t *bytes, size_t n_bytes, struct profile *profile, struct recording_file *file)
{
	while (n_bytes >= 2) {
		size_t n = bytes[0] | (size_t)bytes[1] << 8u;
		Torsh__Chunk *chunk;

		bytes += 2;
		n_bytes -= 2;
		n = n < n_bytes ? n : n_bytes;
		chunk = torsh__chunk__unpack(NULL, n, bytes);
		if (chunk) {
			torsh_steps_sum(chunk);
			torsh_profile_apply(profile, chunk);
			append_timeline(file, chunk);
			torsh__chunk__free_unpacked(chunk, NULL);
		}
		bytes += n;
		n_bytes -= n;
	}
}

static void export_all(struct trace *trace)
{
	static const struct trace_format *const formats[] = {
		&torsh_trace_chrome, &torsh_trace_perfetto, &torsh_trace_json, &torsh_trace_csv,
		&torsh_trace_memory, &torsh_trace_profile,  &torsh_trace_part,
	};
	FILE *nowhere = torsh_need(fopen("/dev/null", "wbe"));

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct sink sink;

		torsh_sink_open(&sink, nowhere, false);
		trace->sink = &sink;
		if (formats[i]->write(trace))
			abort();
		torsh_sink_close(&sink);
	}
	fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const struct recording_limits limits = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct recording_file *file = torsh_recording_create(fd, &limits, 1);
	char *path = torsh_need_text("/proc/self/fd/%d", fd);
	struct profile *profile = torsh_profile_create(path);
	struct symbols *symbols = torsh_symbols_create(false);
	struct survey survey;

	read_chunks(bytes, n_bytes, profile, torsh_need(file));
	torsh_recording_finish(file);
	torsh_survey_make(&survey, profile, profile->processes, profile->n_processes);
	for (uint64_t from_ns = 0; from_ns <= STEP_NS; from_ns += STEP_NS) {
		struct trace trace = {
			.profile = profile,
			.processes = profile->processes,
			.n_processes = profile->n_processes,
			.survey = &survey,
			.symbols = symbols,
			.from_ns = from_ns,
			.to_ns = UINT64_MAX,
		};

		export_all(&trace);
	}
	torsh_survey_free(&survey);
	torsh_symbols_destroy(symbols);
	torsh_profile_destroy(profile);
	free(path);
	close(fd);
	return 0;
}
