/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The threads of a profile for the Firefox Profiler: samples and markers, column by column. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/firefox/firefox.h"

#define NS_IN_MS UINT64_C(1000000)

enum marker_phase { PHASE_INSTANT, PHASE_INTERVAL };

/* A time in ns as milliseconds with six decimals, exactly. */
static void put_ms(struct json_writer *json, const char *name, uint64_t ns)
{
	char *at = torsh_json_begin_value(json, name, DIGITS_MAX + 7);
	uint64_t rest = ns % NS_IN_MS;

	at = torsh_digits(at, ns / NS_IN_MS);
	*at++ = '.';
	for (uint64_t unit = NS_IN_MS / 10; unit; unit /= 10)
		*at++ = (char)('0' + rest / unit % 10);
	json->at = at;
}

static void put_samples(struct json_writer *json, const struct firefox_thread *thread)
{
	size_t n = thread->n_samples;

	torsh_json_begin_object(json, "samples");
	torsh_json_begin_array(json, "stack");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_known(json, NULL, thread->samples[i].node,
				     thread->samples[i].node - 1);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "time");
	for (size_t i = 0; i < n; i++)
		put_ms(json, NULL, thread->samples[i].at_ns);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "weight");
	for (size_t i = 0; i < n; i++)
		put_ms(json, NULL, thread->samples[i].cpu_ns);
	torsh_json_end_array(json);
	torsh_json_put_text(json, "weightType", "tracing-ms");
	torsh_json_begin_array(json, "threadCPUDelta");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, thread->samples[i].cpu_ns);
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "length", n);
	torsh_json_end_object(json);
}

static void put_payload(struct json_writer *json, const struct firefox_thread *thread,
			const struct firefox_marker *marker)
{
	static const char *const members[][3] = {
#define MARKER(NAME, type, first, first_label, second, second_label) {type, first, second},
		FIREFOX_MARKERS
#undef MARKER
	};

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "type", members[marker->type][0]);
	for (size_t i = 0; i < 2; i++) {
		if (marker->fields[i])
			torsh_json_put_u64(json, members[marker->type][i + 1],
					   marker->fields[i] - 1);
	}
	if (marker->node) {
		torsh_json_begin_object(json, "cause");
		torsh_json_put_u64(json, "tid", torsh_trace_tid(thread->process, thread->row));
		put_ms(json, "time", marker->end_ns);
		torsh_json_put_u64(json, "stack", marker->node - 1);
		torsh_json_end_object(json);
	}
	torsh_json_end_object(json);
}

static void put_markers(struct json_writer *json, uint32_t unknown,
			const struct firefox_thread *thread)
{
	size_t n = thread->n_markers;

	torsh_json_begin_object(json, "markers");
	torsh_json_begin_array(json, "data");
	for (size_t i = 0; i < n; i++)
		put_payload(json, thread, &thread->markers[i]);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "name");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL,
				   (thread->markers[i].name ? thread->markers[i].name : unknown) -
					   1);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "startTime");
	for (size_t i = 0; i < n; i++)
		put_ms(json, NULL, thread->markers[i].begin_ns);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "endTime");
	for (size_t i = 0; i < n; i++) {
		if (thread->markers[i].is_instant)
			torsh_json_put_null(json, NULL);
		else
			put_ms(json, NULL, thread->markers[i].end_ns);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "phase");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL,
				   thread->markers[i].is_instant ? PHASE_INSTANT : PHASE_INTERVAL);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "category");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, thread->markers[i].category);
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "length", n);
	torsh_json_end_object(json);
}

/* A pid comes back when a process executes another program: each process has its own text. */
static void put_pid(struct firefox *firefox, const struct recorded_process *process)
{
	const struct trace *trace = firefox->trace;
	unsigned n_before = 0;

	for (size_t i = 0; i < trace->n_processes && trace->processes[i] != process; i++)
		n_before += trace->processes[i]->pid == process->pid;
	if (n_before)
		torsh_json_put_format(&firefox->json, "pid", "%" PRIu32 ".%u", process->pid,
				      n_before);
	else
		torsh_json_put_format(&firefox->json, "pid", "%" PRIu32, process->pid);
}

static void put_name(struct json_writer *json, const struct recorded_process *process, uint32_t row)
{
	uint32_t tid = torsh_trace_tid(process, row);

	if (row < process->n_threads && process->threads[row].name)
		torsh_json_put_text(json, "name", process->threads[row].name);
	else if (tid == process->pid)
		torsh_json_put_text(json, "name", torsh_recording_program_name(process));
	else
		torsh_json_put_format(json, "name", "thread %" PRIu32, tid);
}

static void put_thread(struct firefox *firefox, uint32_t unknown,
		       const struct firefox_thread *thread)
{
	const struct recorded_process *process = thread->process;
	struct json_writer *json = &firefox->json;
	uint32_t tid = torsh_trace_tid(process, thread->row);
	uint64_t begin_ns = process->start_ns, end_ns = process->end_ns;

	if (thread->row < process->n_threads && process->threads[thread->row].is_known) {
		begin_ns = process->threads[thread->row].start_ns;
		end_ns = process->threads[thread->row].end_ns;
	}
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "processType", "default");
	put_ms(json, "processStartupTime", process->start_ns);
	put_ms(json, "processShutdownTime", process->end_ns);
	put_ms(json, "registerTime", begin_ns);
	put_ms(json, "unregisterTime", end_ns > begin_ns ? end_ns : begin_ns);
	torsh_json_begin_array(json, "pausedRanges");
	torsh_json_end_array(json);
	put_name(json, process, thread->row);
	torsh_json_put_bool(json, "isMainThread", tid == process->pid);
	torsh_json_put_text(json, "processName", torsh_recording_program_name(process));
	put_pid(firefox, process);
	torsh_json_put_u64(json, "tid", tid);
	torsh_json_put_bool(json, "showMarkersInTimeline", true);
	put_samples(json, thread);
	put_markers(json, unknown, thread);
	torsh_json_end_object(json);
}

static int compare_threads(const void *left, const void *right)
{
	const struct firefox_thread *a = left, *b = right;
	uint32_t x = a->process->number, y = b->process->number;

	if (x != y)
		return x < y ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

void torsh_firefox_put_threads(struct firefox *firefox)
{
	uint32_t unknown = torsh_firefox_text(firefox, "?");

	if (firefox->n_threads)
		qsort(firefox->threads, firefox->n_threads, sizeof(*firefox->threads),
		      compare_threads);
	torsh_json_begin_lines(&firefox->json, "threads");
	for (size_t i = 0; i < firefox->n_threads; i++)
		put_thread(firefox, unknown, &firefox->threads[i]);
	torsh_json_end_array(&firefox->json);
}
