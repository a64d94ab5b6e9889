/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/export/output.h"

/* Latest forward spans of each process that are searched: a power of two. */
#define FORWARD_SPANS 65536u

struct process_forward {
	const struct recorded_process *process;
	struct sparse_array items; /* of struct forward */
};

struct forward_spans {
	struct process_forward *processes;
	size_t n, capacity;
};

/*
 * Wraps a visitor: it skips spans outside of the selected steps, and device activity outside of
 * the window. All memory events and values pass.
 */
struct watcher {
	const struct trace *trace;
	const struct span_visitor *visitor;
	const struct device_visitor *devices;
	struct device_join *join; /* NULL: not wanted, or there is no device activity */
	void *context;
};

static bool is_in_steps(const struct watcher *watcher, const struct recorded_process *process,
			uint64_t at_ns)
{
	return torsh_prepass_has(watcher->trace->prepass, process, at_ns);
}

static void see_begin(void *context, struct span *span)
{
	const struct watcher *watcher = context;

	if (watcher->visitor->begin && is_in_steps(watcher, span->process, span->start_ns))
		watcher->visitor->begin(watcher->context, span);
}

static void see_end(void *context, struct span *span)
{
	const struct watcher *watcher = context;

	if (watcher->visitor->end && is_in_steps(watcher, span->process, span->start_ns))
		watcher->visitor->end(watcher->context, span);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct watcher *watcher = context;

	if (event->event.id >= EVENT_LAUNCH && watcher->join)
		torsh_device_join_event(watcher->join, process, &event->event);
	if (!watcher->visitor->event ||
	    (event->event.id == EVENT_MARK && !is_in_steps(watcher, process, event->at_ns)))
		return;
	watcher->visitor->event(watcher->context, process, event, innermost);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct watcher *watcher = context;

	if (watcher->visitor->launch)
		watcher->visitor->launch(watcher->context, process, event, around);
	torsh_device_join_launch(watcher->join, process, event, around);
}

static void see_sample(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct watcher *watcher = context;

	if (is_in_steps(watcher, process, event->at_ns))
		watcher->visitor->sample(watcher->context, process, event, around);
}

static void tell_launch(void *context, const struct recorded_process *process,
			const struct device_launch *launch)
{
	const struct watcher *watcher = context;

	if (watcher->devices->launch && torsh_trace_has(watcher->trace, launch->begin_ns) &&
	    is_in_steps(watcher, process, launch->begin_ns))
		watcher->devices->launch(watcher->context, process, launch);
}

static void tell_call(void *context, const struct recorded_process *process,
		      const struct device_launch *call)
{
	const struct watcher *watcher = context;

	if (watcher->devices->call && torsh_trace_has(watcher->trace, call->begin_ns) &&
	    is_in_steps(watcher, process, call->begin_ns))
		watcher->devices->call(watcher->context, process, call);
}

static void tell_row(void *context, const struct device_activity *activity)
{
	const struct watcher *watcher = context;
	uint64_t asked_ns = torsh_activity_issued_ns(activity);

	if (torsh_trace_has(watcher->trace,
			    watcher->trace->is_of_steps ? asked_ns : activity->record.begin_ns) &&
	    is_in_steps(watcher, activity->process, asked_ns))
		watcher->devices->activity(watcher->context, activity);
}

bool torsh_trace_has_launch(const struct trace *trace, const struct device_activity *activity)
{
	return activity->has_launch && torsh_trace_has(trace, activity->launch.begin_ns) &&
	       torsh_prepass_has(trace->prepass, activity->process, activity->launch.begin_ns) &&
	       activity->record.begin_ns >= activity->launch.shown_ns;
}

int torsh_trace_walk(struct trace *trace, const struct span_visitor *visitor,
		     const struct device_visitor *devices, void *context)
{
	struct span_visitor watching = {.begin = see_begin,
					.end = see_end,
					.event = see_event,
					.sample = visitor->sample ? see_sample : NULL};
	static const struct device_visitor telling = {
		.launch = tell_launch, .call = tell_call, .activity = tell_row};
	struct watcher watcher = {
		.trace = trace, .visitor = visitor, .devices = devices, .context = context};
	bool is_restricted = false, has_devices = false;
	int rc;

	for (size_t i = 0; i < trace->prepass->n; i++) {
		is_restricted |= trace->prepass->items[i].steps.is_restricted;
		has_devices |= trace->prepass->items[i].work.is_seen ||
			       trace->prepass->items[i].work.n_launches;
	}
	if (devices && has_devices)
		watcher.join = torsh_device_join_create(trace->prepass, &telling, &watcher);
	if (watcher.join)
		watching.launch = see_launch;
	if (watcher.join || is_restricted)
		visitor = &watching;
	rc = torsh_spans_visit(trace->recording, trace->processes, trace->n_processes,
			       trace->prepass->unnested, NULL, visitor,
			       visitor == watcher.visitor ? context : &watcher, NULL);
	if (watcher.join)
		torsh_device_join_destroy(watcher.join);
	return rc;
}

void torsh_trace_warn_left_out(uint64_t n)
{
	if (n)
		torsh_warn(
			"%" PRIu64
			" kernels, copies and memsets are left out: each overlaps too many others of its stream",
			n);
}

int torsh_trace_to_file(const struct trace *trace, const struct trace_format *format)
{
	struct trace own = *trace;
	struct output file;
	struct output_stream output;
	size_t n = trace->path ? strlen(trace->path) : 0;
	int rc, closed;

	torsh_output_open(&file, trace->path);
	torsh_stream_open(&output, file.file, n > 3 && strcmp(trace->path + n - 3, ".gz") == 0);
	own.output = &output;
	rc = format->write(&own);
	closed = torsh_stream_close(&output);
	rc = rc < 0 ? rc : closed;
	torsh_output_close(&file, rc);
	return rc;
}

uint32_t torsh_trace_tid(const struct recorded_process *process, uint32_t thread)
{
	return thread < process->n_threads && process->threads[thread].tid
		       ? process->threads[thread].tid
		       : process->pid;
}

const char *torsh_trace_gc_name(const struct event_python_gc *run)
{
	static const char *const names[] = {"Python GC, generation 0", "Python GC, generation 1",
					    "Python GC, generation 2"};

	return run->generation < sizeof(names) / sizeof(*names) ? names[run->generation]
								: "Python GC";
}

bool torsh_trace_payload(uint32_t type, uint64_t payload, double *number)
{
	switch (type) {
	case PAYLOAD_U64:
		*number = (double)payload;
		return true;
	case PAYLOAD_I64:
		*number = (double)(int64_t)payload;
		return true;
	case PAYLOAD_F64:
		memcpy(number, &payload, sizeof(*number));
		return isfinite(*number);
	default:
		return false;
	}
}

struct forward_spans *torsh_forward_create(void)
{
	return torsh_need(calloc(1, sizeof(struct forward_spans)));
}

void torsh_forward_destroy(struct forward_spans *spans)
{
	for (size_t i = 0; i < spans->n; i++)
		torsh_sparse_array_destroy(&spans->processes[i].items);
	free(spans->processes);
	free(spans);
}

static struct forward *find_slot(struct forward_spans *spans, const struct span *span)
{
	struct process_forward *of;
	size_t i = 0;

	while (i < spans->n && spans->processes[i].process != span->process)
		i++;
	if (i == spans->n) {
		spans->processes = torsh_array_reserve(spans->processes, spans->n, &spans->capacity,
						       sizeof(*of));
		spans->n++;
		spans->processes[i].process = span->process;
		torsh_sparse_array_create(&spans->processes[i].items, sizeof(struct forward));
	}
	of = &spans->processes[i];
	return torsh_sparse_array_at(&of->items, torsh_span_slot(span, FORWARD_SPANS));
}

/*
 * An operator's sequence number is that of the next node that its thread creates. So the last
 * operator with a number, before that node runs, is the one that created it.
 */
bool torsh_forward_add(struct forward_spans *spans, const struct span *span)
{
	if (span->kind != SPAN_OPERATOR || span->scope != OP_FUNCTION ||
	    span->sequence == OP_NO_SEQUENCE || span->phase == PHASE_BACKWARD || span->is_async)
		return false;
	*find_slot(spans, span) = (struct forward){.sequence = span->sequence,
						   .start_ns = span->start_ns,
						   .ordinal = span->ordinal,
						   .thread = span->thread,
						   .forward_thread = span->forward_thread,
						   .is_there = true};
	return true;
}

bool torsh_forward_take(struct forward_spans *spans, const struct span *span,
			struct forward *forward)
{
	struct forward *slot;

	if (span->kind != SPAN_OPERATOR || span->scope != OP_BACKWARD ||
	    span->sequence == OP_NO_SEQUENCE || span->is_async)
		return false;
	slot = find_slot(spans, span);
	if (!slot->is_there || slot->sequence != span->sequence ||
	    slot->forward_thread != span->forward_thread)
		return false;
	*forward = *slot;
	slot->is_there = false;
	return true;
}
