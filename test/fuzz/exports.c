/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Exports of a timeline that anybody may have written: chunks past the checksums of a recording, as
 * in profile.c, are put into a recording of their own, which every exporter that writes a stream,
 * and every report on devices, then goes over. Behind an empty chunk bytes are made into operators,
 * modules, launches and what devices did, of the first process.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fuzz/packed_chunk.h"
#include "tools/device/kernels/kernels.h"
#include "tools/export/trace.h"
#include "tools/ops/module_totals.h"
#include "tools/ops/step_totals.h"
#include "tools/store/recording_write.h"

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

/* ---- devices --------------------------------------------------------------------------------- */

/* An event from the input: numbers are small, so that launches match their activities. */
struct encoded {
	uint8_t kind, correlation, thread, place, label, far;
	uint8_t later, early, duration[2], node, spare;
};

static uint32_t correlation_of(const struct encoded *encoded)
{
	return encoded->correlation * (encoded->far & 1 ? 1000003u : 1u);
}

static uint64_t begin_of(const struct encoded *encoded, uint64_t at_ns)
{
	return encoded->far & 2 ? UINT64_MAX - encoded->early : at_ns - encoded->early;
}

static uint64_t duration_of(const struct encoded *encoded)
{
	return encoded->far & 4 ? UINT64_MAX
				: encoded->duration[0] | (uint64_t)encoded->duration[1] << 8;
}

/* What the three have in common. */
#define COMMON(encoded, at_ns)                                                     \
	.correlation = correlation_of(encoded), .begin = begin_of(encoded, at_ns), \
	.duration_ns = duration_of(encoded), .device = (encoded)->place & 3,       \
	.context = (encoded)->place >> 2 & 3, .stream = (encoded)->place >> 4,     \
	.graph = (encoded)->node, .node = (encoded)->node

static struct event make_event(const struct encoded *encoded, uint64_t at_ns)
{
	/* What came last has the highest numbers: inputs of before keep their meaning. */
	switch (encoded->kind < 0xf0 ? encoded->kind % 8u : 8u + encoded->kind % 2u) {
	case 0:
		return (struct event){.id = EVENT_OP_BEGIN,
				      .op_begin = {.name = encoded->label,
						   .record = encoded->node,
						   .scope = encoded->far >> 4}};
	case 1:
		return (struct event){.id = EVENT_OP_END, .op_end.record = encoded->node};
	case 2:
		return (struct event){.id = EVENT_LAUNCH,
				      .launch = {.api = encoded->label,
						 .correlation = correlation_of(encoded),
						 .begin = begin_of(encoded, at_ns),
						 .duration_ns = duration_of(encoded)}};
	case 3:
		return (struct event){.id = EVENT_KERNEL,
				      .kernel = {.name = encoded->label,
						 .grid_x = encoded->node,
						 .block_y = encoded->far,
						 COMMON(encoded, at_ns)}};
	case 4:
		return (struct event){.id = EVENT_COPY,
				      .copy = {.kind = encoded->label,
					       .from = encoded->far,
					       COMMON(encoded, at_ns)}};
	case 5:
		return (struct event){.id = EVENT_MEMSET,
				      .memset = {.to = encoded->label, COMMON(encoded, at_ns)}};
	case 8:
		return (struct event){.id = EVENT_SUBMISSION,
				      .submission = {.what = encoded->far & 3,
						     .is_timed = encoded->label & 1,
						     .begin = begin_of(encoded, at_ns),
						     .duration_ns = duration_of(encoded),
						     .correlation = correlation_of(encoded)}};
	case 9:
		return (struct event){.id = EVENT_DEVICE,
				      .device = {.device = encoded->place & 3,
						 .capability_major = encoded->far & 15,
						 .multiprocessors = encoded->node,
						 .warp_threads = encoded->label,
						 .multiprocessor_warps = encoded->label,
						 .multiprocessor_blocks = encoded->far,
						 .multiprocessor_registers = encoded->node,
						 .multiprocessor_shared_bytes = encoded->node}};
	case 6:
		return (struct event){
			.id = EVENT_RANGE_PUSH,
			.range_push = {.name = encoded->label, .source = RANGE_BY_MODULE}};
	default:
		return (struct event){.id = EVENT_RANGE_POP, .range_pop.source = RANGE_BY_MODULE};
	}
}

#undef COMMON

static void append_devices(const uint8_t *bytes, size_t n_bytes, const struct recording *recording,
			   struct recording_file *file)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Timeline message = TORSH__TIMELINE__INIT, *one = &message;
	struct timeline_writer *writer = torsh_need(torsh_timeline_create());
	struct timeline_event added = {.at_ns = STEP_NS};
	struct encoded encoded;

	for (; n_bytes >= sizeof(encoded); bytes += sizeof(encoded), n_bytes -= sizeof(encoded)) {
		memcpy(&encoded, bytes, sizeof(encoded));
		added.at_ns += encoded.later;
		added.thread = encoded.thread & 3;
		added.event = make_event(&encoded, added.at_ns);
		if (torsh_timeline_add(writer, &added))
			abort();
	}
	message.has_process = message.has_n_events = message.has_columns = 1;
	message.process = recording->n_processes ? recording->processes[0]->number : 1;
	if (torsh_timeline_take(writer, &message.n_events, &message.columns.data,
				&message.columns.len))
		abort();
	chunk.n_timeline = 1;
	chunk.timeline = &one;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
	free(message.columns.data);
	torsh_timeline_destroy(writer);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void read_chunk(const uint8_t *bytes, size_t n, struct recording *recording,
		       struct recording_file *file)
{
	Torsh__Chunk *chunk = load_packed_chunk(recording, bytes, n);

	if (!chunk)
		return;
	append_timeline(file, chunk);
	torsh__chunk__free_unpacked(chunk, NULL);
}

/* Each behind its length in two bytes. */
static void read_chunks(const uint8_t *bytes, size_t n_bytes, struct recording *recording,
			struct recording_file *file)
{
	while (n_bytes >= 2) {
		size_t n = bytes[0] | (size_t)bytes[1] << 8u;

		bytes += 2;
		n_bytes -= 2;
		if (!n) {
			append_devices(bytes, n_bytes, recording, file);
			return;
		}
		n = n < n_bytes ? n : n_bytes;
		if (n)
			read_chunk(bytes, n, recording, file);
		bytes += n;
		n_bytes -= n;
	}
}

static void export_one(struct trace *trace, const struct trace_format *format)
{
	static FILE *nowhere;
	struct output_stream output;

	if (!nowhere)
		nowhere = torsh_need(fopen("/dev/null", "wbe"));
	torsh_stream_open(&output, nowhere, false);
	trace->output = &output;
	if (format->write(trace))
		abort();
	torsh_stream_close(&output);
}

static void report_modules(struct trace *trace)
{
	struct module_totals modules;

	torsh_module_totals_collect(&modules, trace->recording, trace->processes,
				    trace->n_processes, trace->prepass);
	torsh_module_totals_free(&modules);
}

static void report_kernels(struct trace *trace)
{
	struct kernels kernels;

	torsh_kernels_collect(&kernels, trace->recording, trace->processes, trace->n_processes,
			      trace->prepass);
	torsh_kernels_free(&kernels);
}

static void report_steps(struct trace *trace)
{
	for (size_t i = 0; i < trace->n_processes; i++) {
		struct step_totals steps;

		torsh_step_totals_collect(&steps, trace->recording, trace->processes[i],
					  trace->prepass);
		torsh_step_totals_free(&steps);
	}
}

static const struct trace_format *const formats[] = {
	&torsh_trace_chrome, &torsh_trace_perfetto, &torsh_trace_json,
	&torsh_trace_csv,    &torsh_trace_memory,   &torsh_trace_profile,
	&torsh_trace_part,   &torsh_trace_manifest, &torsh_trace_corr,
};
static void (*const reports[])(struct trace *trace) = {report_modules, report_kernels,
						       report_steps};

#define N_FORMATS (sizeof(formats) / sizeof(*formats))
#define N_WAYS (N_FORMATS + sizeof(reports) / sizeof(*reports))

#define EVERY_WAY SIZE_MAX

/*
 * Which export or report in which of the two windows the input goes to. A replay goes everywhere.
 * While it is fuzzed each input goes one way, which its bytes choose, so that many more are tried.
 */
static size_t choose_way(const uint8_t *bytes, size_t n_bytes)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	size_t sum = n_bytes;

	for (size_t i = 0; i < n_bytes; i++)
		sum += bytes[i];
	return sum % (2 * N_WAYS);
#else
	(void)bytes;
	(void)n_bytes;
	return EVERY_WAY;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const struct recording_limits limits = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct recording_file *file = torsh_recording_create(fd, &limits, 1);
	char *path = torsh_need_text("/proc/self/fd/%d", fd);
	struct recording *recording = torsh_recording_new(path);
	struct symbols *symbols = torsh_symbols_create(false);
	size_t chosen = choose_way(bytes, n_bytes);
	struct prepass prepass;

	read_chunks(bytes, n_bytes, recording, torsh_need(file));
	torsh_recording_finish(file);
	torsh_prepass_make(&prepass, recording, recording->processes, recording->n_processes);
	for (size_t way = 0; way < 2 * N_WAYS; way++) {
		uint64_t from_ns = way < N_WAYS ? 0 : STEP_NS;
		struct trace trace = {
			.recording = recording,
			.processes = recording->processes,
			.n_processes = recording->n_processes,
			.prepass = &prepass,
			.symbols = symbols,
			.from_ns = from_ns,
			.to_ns = UINT64_MAX,
			.is_of_steps = from_ns != 0,
		};

		if (chosen != way && chosen != EVERY_WAY)
			continue;
		if (way % N_WAYS < N_FORMATS)
			export_one(&trace, formats[way % N_WAYS]);
		else
			reports[way % N_WAYS - N_FORMATS](&trace);
	}
	torsh_prepass_free(&prepass);
	torsh_symbols_destroy(symbols);
	torsh_recording_destroy(recording);
	free(path);
	close(fd);
	return 0;
}
