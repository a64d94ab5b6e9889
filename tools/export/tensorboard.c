/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A directory for TensorBoard: an event file with scalars for each step (time, phases, FLOP/s, peak of tensors) and the
 * program's own values, and beside it the trace that its profiler plugin reads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tensorboard.pb-c.h"
#include "tools/die.h"
#include "tools/export/trace.h"
#include "tools/profile/step_totals.h"

#define MEGABYTE 1e6 /* a float has seven digits: bytes would lose theirs */
#define CRC_POLYNOMIAL 0x82f63b78u /* Castagnoli's, reflected */
#define CRC_MASK 0xa282ead8u

struct board {
	struct trace *trace;
	FILE *file;
	uint32_t crc_table[256];
	uint64_t n_values; /* of the program, so far */
};

static void make_crc_table(uint32_t *table)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
		table[i] = crc;
	}
}

/* CRC-32C, turned and moved as TensorFlow's records want it. */
static uint32_t masked_crc(const struct board *board, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint32_t crc = UINT32_MAX;

	while (n--)
		crc = board->crc_table[(crc ^ *at++) & 0xff] ^ crc >> 8;
	crc = ~crc;
	return (crc >> 15 | crc << 17) + CRC_MASK;
}

/* Length, its checksum, the message, its checksum. */
static void put_record(struct board *board, const Tensorboard__Event *event)
{
	uint64_t n = tensorboard__event__get_packed_size(event);
	uint8_t *bytes = torsh_need(malloc(n));
	uint32_t crc = masked_crc(board, &n, sizeof(n));

	tensorboard__event__pack(event, bytes);
	fwrite(&n, sizeof(n), 1, board->file);
	fwrite(&crc, sizeof(crc), 1, board->file);
	fwrite(bytes, 1, n, board->file);
	crc = masked_crc(board, bytes, n);
	fwrite(&crc, sizeof(crc), 1, board->file);
	free(bytes);
}

static double wall_time(const struct board *board, uint64_t at_ns)
{
	return (double)(board->trace->profile->start_realtime_ns + at_ns) / 1e9;
}

static void put_scalar(struct board *board, const char *tag, uint64_t step, uint64_t at_ns, double number)
{
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
	Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
	Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT, *values = &value;

	value.tag = (char *)(uintptr_t)tag;
	value.has_simple_value = 1;
	value.simple_value = (float)number;
	summary.n_value = 1;
	summary.value = &values;
	event.has_wall_time = event.has_step = 1;
	event.wall_time = wall_time(board, at_ns);
	event.step = (int64_t)step;
	event.summary = &summary;
	put_record(board, &event);
}

static void put_version(struct board *board)
{
	static char version[] = "brain.Event:2";
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;

	event.has_wall_time = 1;
	event.wall_time = wall_time(board, 0);
	event.file_version = version;
	put_record(board, &event);
}

static void put_step(struct board *board, const struct survey_process *of, const struct step *step,
		     const struct step_total *total)
{
	double seconds = (double)(step->end_ns - step->start_ns) / 1e9;
	char tag[32];

	put_scalar(board, "step/ms", step->number, step->end_ns, seconds * 1e3);
	if (seconds > 0)
		put_scalar(board, "step/GFLOPs_per_second", step->number, step->end_ns,
			   (double)total->flops_all / 1e9 / seconds);
	if (of->n_tensors)
		put_scalar(board, "step/peak_MB", step->number, step->end_ns, (double)total->peak_bytes / MEGABYTE);
	for (size_t i = 0; i < N_PHASES; i++) {
		snprintf(tag, sizeof(tag), "phase/%s_ms", torsh_phase_names[i]);
		put_scalar(board, tag, step->number, step->end_ns, (double)total->phase_ns[i] / 1e6);
	}
}

static void put_steps(struct board *board, size_t i)
{
	const struct survey_process *of = &board->trace->survey->items[i];
	struct step_total *totals;

	if (!of->steps.n)
		return;
	totals = torsh_step_totals(board->trace->profile, board->trace->processes[i], board->trace->survey);
	for (size_t k = 0; k < of->steps.n; k++) {
		if (torsh_trace_has(board->trace, of->steps.items[k].start_ns))
			put_step(board, of, &of->steps.items[k], &totals[k]);
	}
	free(totals);
}

/* The program's own values, at the step in which they are; where there are none they are counted. */
static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	const struct event_value *value = &event->event.value;
	struct board *board = context;
	const struct steps *steps;
	const char *name;
	double number;
	size_t step;

	(void)innermost;
	if (event->event.id != EVENT_VALUE || !torsh_trace_has(board->trace, event->at_ns) ||
	    !torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	steps = &torsh_survey_of(board->trace->survey, process)->steps;
	step = torsh_steps_at(steps, event->at_ns);
	name = torsh_timeline_label(process, value->name);
	put_scalar(board, name ? name : "?", step != STEP_NONE ? steps->items[step].number : board->n_values++,
		   event->at_ns, number);
}

/* DIR/HOST_PID.pt.trace.json.gz, as the profiler's plugin looks for it. */
static int write_plugin_trace(struct trace *trace, const char *host)
{
	char *path = torsh_need_text("%s/%s_%" PRIu32 ".%" PRIu64 ".pt.trace.json.gz", trace->path, host,
				     trace->n_processes ? trace->processes[0]->pid : 0,
				     trace->profile->start_realtime_ns / 1000000);
	FILE *file = fopen(path, "wbe");
	struct trace own = *trace;
	struct sink sink;
	int rc, closed;

	free(path);
	if (!file)
		return -errno;
	torsh_sink_open(&sink, file, true);
	own.sink = &sink;
	rc = torsh_trace_chrome.write(&own);
	closed = torsh_sink_close(&sink);
	if (fclose(file) != 0 && closed == 0)
		closed = -errno;
	return rc < 0 ? rc : closed;
}

static int write_tensorboard(struct trace *trace)
{
	static const struct calls_visitor visitor = {.event = see_event};
	const char *host = trace->profile->host && *trace->profile->host ? trace->profile->host : "host";
	struct board board = {.trace = trace};
	char *path;
	int rc;

	if (mkdir(trace->path, 0777) < 0 && errno != EEXIST)
		return -errno;
	path = torsh_need_text("%s/events.out.tfevents.%" PRIu64 ".%s", trace->path,
			       trace->profile->start_realtime_ns / 1000000000, host);
	board.file = fopen(path, "wbe");
	free(path);
	if (!board.file)
		return -errno;
	make_crc_table(board.crc_table);
	put_version(&board);
	for (size_t i = 0; i < trace->n_processes; i++)
		put_steps(&board, i);
	rc = torsh_trace_walk(trace, &visitor, &board);
	if (fclose(board.file) != 0 && rc == 0)
		rc = -errno;
	return rc < 0 ? rc : write_plugin_trace(trace, host);
}

const struct trace_format torsh_trace_tensorboard = {.name = "tensorboard",
						     .ending = ".tensorboard",
						     .is_binary = true,
						     .needs_path = true,
						     .is_directory = true,
						     .needs = TRACE_NEEDS_EVENTS,
						     .write = write_tensorboard};
