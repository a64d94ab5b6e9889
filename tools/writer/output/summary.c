/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/summary.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/size.h"

#define LINES_MAX 3u

void torsh_summary_destroy(struct summary *summary)
{
	free(summary->processes);
	*summary = (struct summary){0};
}

static void copy_program(const struct target *target, char *program, size_t n_program)
{
	size_t n;
	char *path = torsh_view_text(&target->view, target->start.program, -1, &n);
	const char *slash = strrchr(path, '/');

	snprintf(program, n_program, "%s", slash ? slash + 1 : path);
	free(path);
}

static bool is_heap_left_out(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->counters[COUNTER_heap_left_out],
				    memory_order_relaxed) != 0;
}

void torsh_summary_add(struct summary *summary, const struct target *target)
{
	const struct process_state *state = &target->state;
	const struct peak_tracker *tracker = &state->heap.tracker;
	struct target_counts counts = torsh_target_counts(target);
	/* The current sum may be the maximum. */
	bool is_at_peak = tracker->bytes > tracker->peak_bytes;
	uint64_t peak_stamp = is_at_peak ? state->last_stamp : tracker->peak_stamp;
	struct process_summary *process;

	summary->processes = torsh_array_reserve(summary->processes, summary->n, &summary->capacity,
						 sizeof(*summary->processes));
	process = &summary->processes[summary->n++];
	*process = (struct process_summary){
		.pid = (uint32_t)target->pid,
		.n_events = counts.produced,
		.n_dropped = counts.dropped,
		.peak_bytes = is_at_peak ? tracker->bytes : tracker->peak_bytes,
		.peak_ns = torsh_clock_to_ns(&state->clock, peak_stamp) - state->clock.start_ns,
		.live_bytes = tracker->bytes,
		.live_blocks = tracker->n,
		.has_heap = counts.delivered && !is_heap_left_out(target),
		.has_operators = state->has_operators,
		.has_devices = state->has_devices,
		.is_lossy = torsh_target_is_lossy(target),
		.ended_with_exit = state->has_exited && state->exit_stamp == state->last_stamp,
	};
	copy_program(target, process->program, sizeof(process->program));
}

static void print_process(FILE *out, const struct process_summary *process)
{
	char events[SIZE_TEXT_BYTES], dropped[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES],
		peak[SIZE_TEXT_BYTES];
	char live[SIZE_TEXT_BYTES];

	fprintf(out, "torsh: %s (pid %u): %s events, %s dropped",
		process->program[0] ? process->program : "?", process->pid,
		torsh_size_grouped(process->n_events, events),
		torsh_size_grouped(process->n_dropped, dropped));
	if (process->is_lossy)
		fputs("; incomplete: torsh report lists what was lost", out);
	if (process->has_heap)
		fprintf(out, "; heap peak %s at %.1f s; %s in %s alive at the end",
			torsh_size_human(process->peak_bytes, peak), (double)process->peak_ns / 1e9,
			torsh_size_human(process->live_bytes, live),
			torsh_size_counted(process->live_blocks, "block", blocks));
	fputc('\n', out);
}

/* Three commands that make sense for what was recorded. */
static void print_next(FILE *out, const struct summary *summary, const char *recording)
{
	bool has_heap = false, has_operators = false, has_devices = false;
	const char *names[5];
	size_t n = 0;

	for (uint32_t i = 0; i < summary->n; i++) {
		has_heap = has_heap || summary->processes[i].has_heap;
		has_operators = has_operators || summary->processes[i].has_operators;
		has_devices = has_devices || summary->processes[i].has_devices;
	}
	if (has_heap)
		names[n++] = "leaks";
	if (has_devices)
		names[n++] = "kernels";
	if (has_operators)
		names[n++] = "ops";
	if (has_heap)
		names[n++] = "peak";
	names[n++] = "html";
	fprintf(out, "torsh: recording in %s; next: torsh report", recording);
	for (size_t i = 0; i < n && i < 2; i++)
		fprintf(out, "%s torsh %s", i + 1 < n && i == 0 ? "," : " or", names[i]);
	fputc('\n', out);
}

static int by_events(const void *a, const void *b)
{
	const struct process_summary *x = a, *y = b;

	return (x->n_events < y->n_events) - (x->n_events > y->n_events);
}

void torsh_summary_print(FILE *out, const struct summary *summary, const char *recording)
{
	uint32_t n = summary->n;
	struct process_summary *sorted = n ? malloc(n * sizeof(*sorted)) : NULL;
	char more[SIZE_TEXT_BYTES];

	if (!sorted)
		return;
	memcpy(sorted, summary->processes, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_events);
	for (uint32_t i = 0; i < n && i < LINES_MAX; i++)
		print_process(out, &sorted[i]);
	if (n > LINES_MAX)
		fprintf(out, "torsh: and %s\n",
			torsh_size_counted(n - LINES_MAX, "more process", more));
	print_next(out, summary, recording);
	free(sorted);
}
