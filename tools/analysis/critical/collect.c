/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/critical/collect.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analysis/metrics.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* The pass. */
struct pass {
	struct collected *to;
	const struct steps *steps;
	struct device_join *join;
	struct collective_calls collectives;
	struct device_sync *waits; /* CUPTI's records of waits, to be joined */
	size_t n_waits, waits_room;
};

#define APPEND(items, n, room, ...)                                                 \
	do {                                                                        \
		(items) = torsh_array_reserve(items, n, &(room), sizeof(*(items))); \
		(items)[(n)++] = __VA_ARGS__;                                       \
	} while (0)

static bool is_inside(const struct collected *to, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > to->from_ns && begin_ns < to->to_ns && end_ns > begin_ns;
}

/* A step's bound is a moment of the thread on which the program goes from step to step. */
static void see_moment(struct pass *pass, uint32_t thread, uint64_t at_ns)
{
	const struct steps *steps = pass->steps;
	size_t i = torsh_steps_after(steps->items, steps->n, at_ns);
	bool is_bound = (i < steps->n && steps->items[i].start_ns == at_ns) ||
			(i && steps->items[i - 1].end_ns == at_ns);

	if (is_bound && thread < pass->to->process->n_threads)
		pass->to->n_bounds[thread]++;
}

static void see_begin(void *context, struct span *span)
{
	see_moment(context, span->thread, span->start_ns);
}

static void see_end(void *context, struct span *span)
{
	struct pass *pass = context;
	struct collected *to = pass->to;

	see_moment(pass, span->end_thread, span->end_ns);
	if (!is_inside(to, span->start_ns, span->end_ns) || span->is_async)
		return;
	torsh_thread_stays_end(&to->stays, span);
	if (span->traits & NAME_DATA)
		APPEND(to->loads, to->n_loads, to->loads_room,
		       (struct host_interval){.begin_ns = span->start_ns,
					      .end_ns = span->end_ns,
					      .thread = span->thread});
}

static void see_collective(struct pass *pass, const struct timeline_event *event,
			   const struct span *innermost)
{
	struct collected *to = pass->to;
	const struct event_collective_wait *wait = &event->event.collective_wait;
	const struct collective_call *call =
		torsh_collective_calls_see(&pass->collectives, to->process, event, innermost);

	if (call && is_inside(to, wait->begin, wait->begin + wait->duration_ns))
		APPEND(to->collectives, to->n_collectives, to->collectives_room,
		       (struct host_interval){.begin_ns = wait->begin,
					      .end_ns = wait->begin + wait->duration_ns,
					      .thread = event->thread});
}

static void see_device_wait(struct pass *pass, const struct event_device_wait *wait)
{
	struct collected *to = pass->to;

	if (wait->kind == WAIT_STREAM_FOR_EVENT)
		APPEND(to->stream_waits, to->n_stream_waits, to->stream_waits_room,
		       (struct stream_wait){.at_ns = wait->begin,
					    .context = wait->context,
					    .stream = wait->stream});
	else
		APPEND(pass->waits, pass->n_waits, pass->waits_room,
		       (struct device_sync){.correlation = wait->correlation,
					    .kind = wait->kind,
					    .context = wait->context,
					    .stream = wait->stream});
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct pass *pass = context;
	struct collected *to = pass->to;
	const struct event_thread_wait *wait = &event->event.thread_wait;
	const struct event_python_gc *run = &event->event.python_gc;

	see_collective(pass, event, innermost);
	switch (event->event.id) {
	case EVENT_STEP:
		see_moment(pass, event->thread, event->at_ns);
		return;
	case EVENT_THREAD_WAIT:
		if (is_inside(to, wait->begin, wait->begin + wait->duration_ns))
			torsh_thread_stays_event(&to->stays, event, innermost);
		return;
	case EVENT_PYTHON_GC:
		if (is_inside(to, run->begin, run->begin + run->duration_ns))
			torsh_thread_stays_event(&to->stays, event, innermost);
		return;
	case EVENT_DEVICE_WAIT:
		see_device_wait(pass, &event->event.device_wait);
		return;
	default:
		torsh_device_join_event(pass->join, process, &event->event);
	}
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct pass *pass = context;

	torsh_device_join_launch(pass->join, process, event, around);
}

static void see_call(void *context, const struct recorded_process *process,
		     const struct device_launch *call)
{
	struct collected *to = ((struct pass *)context)->to;
	const char *name = torsh_timeline_label(process, call->api);
	uint64_t end_ns = call->begin_ns + call->duration_ns;

	if (name && torsh_host_call_waits(name) && is_inside(to, call->begin_ns, end_ns))
		APPEND(to->syncs, to->n_syncs, to->syncs_room,
		       (struct device_sync){.call = {.begin_ns = call->begin_ns,
						     .end_ns = end_ns,
						     .thread = call->thread,
						     .name = name},
					    .correlation = call->correlation});
}

/* A copy that ended before its call did: the call waited for it, whatever it is named. */
static void add_waiting_copy(struct collected *to, const struct device_activity *activity)
{
	const struct activity_record *record = &activity->record;
	const struct device_launch *launch = &activity->launch;
	uint64_t end_ns = record->begin_ns + record->duration_ns;

	if (record->what == DEVICE_COPY && activity->has_launch && !record->graph &&
	    end_ns <= launch->begin_ns + launch->duration_ns)
		APPEND(to->syncs, to->n_syncs, to->syncs_room,
		       (struct device_sync){
			       .call = {.begin_ns = launch->begin_ns,
					.end_ns = launch->begin_ns + launch->duration_ns,
					.thread = launch->thread,
					.name = torsh_timeline_label(activity->process,
								     launch->api)},
			       .correlation = launch->correlation,
			       .kind = WAIT_FOR_STREAM,
			       .context = record->context,
			       .stream = record->stream,
			       .is_copy = true});
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct collected *to = ((struct pass *)context)->to;
	const struct activity_record *record = &activity->record;
	uint64_t end_ns = record->begin_ns + record->duration_ns;

	if (!is_inside(to, record->begin_ns, end_ns))
		return;
	APPEND(to->pieces, to->n_pieces, to->pieces_room,
	       (struct device_piece){
		       .begin_ns = record->begin_ns,
		       .end_ns = end_ns,
		       .name = record->what == DEVICE_KERNEL
				       ? torsh_timeline_label(activity->process, record->name)
				       : NULL,
		       .what = record->what,
		       .device = record->device,
		       .context = record->context,
		       .stream = record->stream,
		       .has_launch = activity->has_launch,
		       .thread = activity->launch.thread,
		       .launched_ns = activity->launch.begin_ns});
	add_waiting_copy(to, activity);
}

/* ---- after the pass -------------------------------------------------------------------------- */

static int compare_syncs(const void *a, const void *b)
{
	const struct device_sync *x = a, *y = b;

	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Give CUPTI's records of waits to the calls that waited. */
static void join_waits(struct pass *pass)
{
	if (!pass->n_waits)
		return;
	qsort(pass->waits, pass->n_waits, sizeof(*pass->waits), compare_syncs);
	for (size_t i = 0; i < pass->to->n_syncs; i++) {
		struct device_sync *sync = &pass->to->syncs[i];
		const struct device_sync *wait =
			sync->is_copy ? NULL
				      : bsearch(sync, pass->waits, pass->n_waits,
						sizeof(*pass->waits), compare_syncs);

		if (!wait)
			continue;
		sync->kind = wait->kind;
		sync->context = wait->context;
		sync->stream = wait->stream;
	}
}

void torsh_collected_read(struct collected *collected, const struct recording *recording,
			  struct recorded_process *process, const struct prepass *prepass,
			  uint64_t from_ns, uint64_t to_ns)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor devices = {.call = see_call, .activity = see_activity};
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	struct pass pass = {.to = collected, .steps = &of->steps};
	int rc;

	*collected = (struct collected){.process = process, .from_ns = from_ns, .to_ns = to_ns};
	collected->has_waits = torsh_process_attributes_find(&of->facts, "waits") != NULL;
	collected->n_bounds =
		torsh_need_items(NULL, 0, process->n_threads + 1, sizeof(*collected->n_bounds));
	pass.join = torsh_device_join_create(prepass, &devices, &pass);
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &pass,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_device_join_destroy(pass.join);
	join_waits(&pass);
	torsh_collective_calls_free(&pass.collectives);
	free(pass.waits);
}

void torsh_collected_free(struct collected *collected)
{
	torsh_thread_stays_free(&collected->stays);
	free(collected->loads);
	free(collected->collectives);
	free(collected->syncs);
	free(collected->pieces);
	free(collected->stream_waits);
	free(collected->n_bounds);
	*collected = (struct collected){0};
}
