/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/process_timeline.h"

#include <errno.h>
#include <stdbool.h>

#include "tools/base/device.h"
#include "tools/base/size.h"

#define TENSOR_ON_CUDA 1u /* c10::DeviceType::CUDA */

/* Replace labels by the recording's numbers and stamps by times. */
static void translate_fields(struct process_state *state, struct event *event)
{
#define TRANSLATE_u32(field)
#define TRANSLATE_i32(field)
#define TRANSLATE_u64(field)
#define TRANSLATE_label(field) (field) = torsh_process_code_label(&state->code, field);
#define TRANSLATE_moment(field) (field) = torsh_clock_monotonic_to_ns(&state->clock, field);
	switch (event->id) {
#define EVENT(id, NAME, name, text)                    \
	case EVENT_##NAME: {                           \
		struct event_##name *e = &event->name; \
		(void)e;
#define FIELD(type, field) TRANSLATE_##type(e->field)
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
}

/* Returns true if the event's stack is the thread's current one; other events have an older one. */
static bool is_with_stack(const struct event *event)
{
	switch (event->id) {
	case EVENT_OP_BEGIN:
		return event->op_begin.flags & OP_HAS_STACK;
	case EVENT_TENSOR:
		return !event->tensor.is_free;
	case EVENT_CPU_SAMPLE:
		return event->cpu_sample.flags & CPU_SAMPLE_HAS_STACK;
	case EVENT_LAUNCH:
		return event->launch.flags & CALL_HAS_STACK;
	case EVENT_GRAPH_NODE:
		return event->graph_node.flags & CALL_HAS_STACK;
	case EVENT_GRAPH_MEMORY:
		return !event->graph_memory.is_free;
	case EVENT_DEVICE_CODE:
		return !event->device_code.is_unload;
	case EVENT_DEVICE_ALLOC:
	case EVENT_DEVICE_REFUSED:
	case EVENT_PYTHON_GC:
	case EVENT_LIBRARY_CALL:
		return true;
	case EVENT_POOL:
		return event->pool.what == POOL_REGION || event->pool.what == POOL_BEGINS;
	case EVENT_THREAD_WAIT:
		return !event->thread_wait.tid;
	default:
		return event->id == EVENT_OUT_OF_MEMORY;
	}
}

/* Returns true if a report may restrict itself to what lies on one side of the event. */
static bool is_edge(const struct event *event)
{
	return event->id == EVENT_MARK || event->id == EVENT_RANGE_START ||
	       (event->id == EVENT_RANGE_PUSH && event->range_push.source != RANGE_BY_MODULE);
}

static void mark_tensor(struct process_state *state, const struct event_tensor *tensor)
{
	struct live_block block;

	if (tensor->is_free || tensor->device || !tensor->address)
		return;
	if (torsh_live_find(&state->heap.live, tensor->address, &block))
		state->heap.sites[block.site].is_of_tensors = true;
}

static void note_refusal(struct process_state *state, const struct event_device_refused *refused)
{
	char device[DEVICE_NAME_BYTES], bytes[SIZE_TEXT_BYTES];

	if (state->has_refusals)
		return;
	state->has_refusals = true;
	torsh_process_state_note(
		state,
		"a device was out of memory: %s of %s were refused; torsh peak --device prints when, where, how often",
		refused->flags & BLOCK_IS_UNSIZED ? "some"
						  : torsh_size_exact(refused->bytes, bytes),
		torsh_device_name(TENSOR_ON_CUDA << 8 | (refused->device & 0xff), device));
}

/* torch.distributed's world counts before MPI's, which its processes may share with others. */
static void take_world(struct process_state *state, const struct event_process_group *group)
{
	if (!group->is_world || (group->is_world == WORLD_OF_MPI && state->has_c10d_world))
		return;
	state->has_c10d_world = group->is_world == WORLD_OF_C10D;
	state->world_rank = group->own_rank;
	state->world_size = group->n_ranks;
}

/* Update the totals from a timeline event, after its labels became numbers. */
static void update_totals(struct process_state *state, struct heap_producer *producer,
			  const struct event *event, uint64_t stamp)
{
	const char *name = NULL;
	step_name ended;
	bool is_step;

	state->has_operators = state->has_operators ||
			       (event->id == EVENT_OP_BEGIN && event->op_begin.scope != OP_USER);
	state->has_devices = state->has_devices || event->id == EVENT_LAUNCH;
	producer->scope = torsh_scopes_take(&state->scopes, producer->number, event);
	if (event->id == EVENT_TENSOR && event->tensor.is_free)
		torsh_tensor_reads_forget(&state->reads, event->tensor.address);
	if (event->id == EVENT_TENSOR)
		mark_tensor(state, &event->tensor);
	state->has_asked_driver = state->has_asked_driver || event->id == EVENT_DEVICE_ROOM;
	state->has_cpu_counters = state->has_cpu_counters || event->id == EVENT_CPU_COUNTER_MODE;
	if (event->id == EVENT_DEVICE_REFUSED)
		note_refusal(state, &event->device_refused);
	if (event->id == EVENT_LIBRARY_CALL)
		torsh_library_calls_take(&state->library_calls, &event->library_call);
	if (event->id == EVENT_PROCESS_GROUP)
		take_world(state, &event->process_group);
	if (event->id == EVENT_OUT_OF_MEMORY) {
		state->is_out_of_memory = true;
		state->out_of_memory = (struct folded_out_of_memory){
			.stamp = stamp,
			.operator= producer->scope->operator,
			.module = producer->scope->module,
			.event = event->out_of_memory,
		};
	}
	if (event->id == EVENT_OP_BEGIN && event->op_begin.scope == OP_USER && event->op_begin.name)
		name = state->tables->code.functions[event->op_begin.name - 1].name;
	ended = state->steps.current;
	is_step = torsh_step_marks_take(&state->steps, event, name, stamp);
	if (state->steps.current != state->heap.step_name)
		torsh_heap_name_step(&state->heap, stamp, state->steps.current,
				     state->steps.source == STEP_BY_OPTIMIZER);
	if (is_step) {
		torsh_step_pace_take(&state->pace, torsh_clock_to_ns(&state->clock, stamp));
		state->has_hung = false;
		torsh_heap_mark_step(&state->heap, stamp);
		torsh_moments_event(&state->heap, stamp,
				    &(struct moment_event){.kind = MOMENT_BY_STEP,
							   .name = ended,
							   .n_steps = state->steps.n_steps});
	}
	if (!state->first_edge_stamp && (is_step || is_edge(event) || state->steps.start_stamp))
		state->first_edge_stamp = stamp;
	if (event->id == EVENT_MARK)
		torsh_moments_event(
			&state->heap, stamp,
			&(struct moment_event){.kind = MOMENT_BY_MARK, .name = event->mark.name});
}

/* Returns true for what events refer to however late they come. */
static bool is_definition(uint32_t id)
{
	switch (id) {
	case EVENT_SCHEDULE:
	case EVENT_THREAD_NAME:
	case EVENT_OP_THREAD:
	case EVENT_PROCESS_GROUP:
	case EVENT_DEVICE_MODE:
	case EVENT_GRAPH_NODE:
	case EVENT_GRAPH_EXECUTABLE:
	case EVENT_DEVICE:
	case EVENT_DEVICE_CONTEXT:
	case EVENT_DEVICE_STREAM:
	case EVENT_COUNTER_MODE:
	case EVENT_COUNTER_METRIC:
	case EVENT_FACT:
	case EVENT_CPU_SAMPLER:
	case EVENT_CPU_COUNTER_MODE:
		return true;
	default:
		return false;
	}
}

static void add_row(struct process_state *state, const struct timeline_event *row)
{
	struct timeline_writer *writer;

	if (state->timeline_failed) {
		state->losses[WRITER_LOSS_timeline_unkept]++;
		return;
	}
	if (!state->timeline)
		state->timeline = torsh_timeline_create();
	writer = state->timeline;
	if (state->definitions && is_definition(row->event.id)) {
		writer = state->definitions;
	} else if (writer) {
		if (!torsh_timeline_count(writer))
			state->timeline_first_ns = row->at_ns;
		state->timeline_last_ns = row->at_ns;
	}
	state->timeline_failed = writer ? torsh_timeline_add(writer, row) : -ENOMEM;
	state->losses[WRITER_LOSS_timeline_unkept] += state->timeline_failed != 0;
}

static void mark_heap(struct process_state *state, uint32_t thread, uint64_t stamp)
{
	struct timeline_event row = {
		.at_ns = torsh_clock_to_ns(&state->clock, stamp),
		.thread = thread,
		.event = {.id = EVENT_HEAP_MARK,
			  .heap_mark = {.heap_bytes = state->heap.tracker.bytes}},
	};
	uint64_t peak_stamp;

	torsh_peak_tracker_mark(&state->heap.tracker, stamp, &row.event.heap_mark.peak_bytes,
				&peak_stamp);
	row.event.heap_mark.peak_ns = torsh_clock_to_ns(&state->clock, peak_stamp);
	add_row(state, &row);
}

void torsh_process_timeline_mark_heap(struct process_state *state)
{
	if (state->has_device_memory)
		mark_heap(state, state->device_thread, state->last_stamp);
}

/* Returns true if that time of the session lies in a pause. */
static bool was_paused_at(const struct process_state *state, uint64_t at_ns)
{
	uint32_t from = 0, to = state->n_pause_edges;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (torsh_clock_to_ns(&state->clock, state->pause_edges[middle]) <= at_ns)
			from = middle + 1;
		else
			to = middle;
	}
	return from & 1;
}

/* Returns true if the event, whose fields are translated, belongs to a pause. */
static bool is_left_out(struct process_state *state, const struct event *event)
{
	uint64_t begin_ns;

	if (torsh_paused_events_begin_ns(event, &begin_ns))
		return was_paused_at(state, begin_ns);
	return torsh_paused_events_take(&state->paused, event, state->n_edges_passed & 1);
}

/*
 * Returns true if counts are of time in a pause, or may be: one began or ended since the thread's
 * previous counts. What the hardware counted has the same time as the counts before it.
 */
static bool has_paused_counts(const struct process_state *state, struct heap_producer *producer,
			      const struct event *event)
{
	if (event->id == EVENT_CPU_HARDWARE_COUNTS)
		return producer->are_counts_paused;
	if (event->id != EVENT_CPU_COUNTS)
		return false;
	producer->are_counts_paused =
		!event->cpu_counts.is_base &&
		(producer->n_edges_counted != state->n_edges_passed || state->n_edges_passed & 1);
	producer->n_edges_counted = state->n_edges_passed;
	return producer->are_counts_paused;
}

/* Returns true if the event changes device memory. */
static bool is_device_change(uint32_t id)
{
	return id == EVENT_DEVICE_ALLOC || id == EVENT_DEVICE_FREE ||
	       id == EVENT_DEVICE_FREE_FAILED || id == EVENT_GRAPH_LAUNCH;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* The thread with that tid that began last; the sender where there is none. */
static uint32_t thread_with(const struct process_state *state, uint32_t tid, uint32_t sender,
			    uint32_t otherwise)
{
	uint32_t found;

	if (!tid || state->threads[sender].tid == tid)
		return sender;
	found = torsh_process_state_thread(state, tid);
	return found == UINT32_MAX ? otherwise : found;
}

static void take_wait(struct process_state *state, const struct ring_consumer *consumer,
		      struct timeline_event *row)
{
	struct event_thread_wait *wait = &row->event.thread_wait;
	const struct scope *scope = consumer->heap.scope;

	row->thread = thread_with(state, wait->tid, consumer->thread, consumer->thread);
	if (wait->waker)
		wait->waker = thread_with(state, wait->waker, consumer->thread, UINT32_MAX) + 1;
	if (row->thread == consumer->thread)
		torsh_tasks_wait(&state->tasks, &consumer->task, wait->duration_ns);
	torsh_thread_waits_take(&state->waits,
				(struct thread_wait_key){
					.thread = row->thread,
					.kind = wait->kind,
					.stack = row->stack,
					.operator= wait->tid || !scope ? 0 : scope->operator,
				},
				wait->duration_ns, row->thread != consumer->thread);
}

/* ---- requests and tasks ---------------------------------------------------------------------- */

static bool is_of_task(uint32_t id)
{
	return id == EVENT_TASK || id == EVENT_TASK_TURN || id == EVENT_TASK_END;
}

/* Folded; the timeline has the requests' ranges. */
static void take_task(struct process_state *state, struct ring_consumer *consumer,
		      struct timeline_event *row)
{
	struct event *event = &row->event;

	translate_fields(state, event);
	if (event->id == EVENT_TASK)
		torsh_tasks_begin(&state->tasks, &event->task, row->at_ns);
	else if (event->id == EVENT_TASK_TURN)
		torsh_tasks_turn(&state->tasks, &consumer->task, &event->task_turn, row->at_ns);
	else
		torsh_tasks_end(&state->tasks, event->task_end.number, row->at_ns);
}

void torsh_process_timeline_keep(struct process_state *state, struct ring_consumer *consumer,
				 uint32_t i, uint64_t stamp)
{
	const struct consumed_event *event = &consumer->events[i];
	const struct event *cold = &consumer->cold[i];
	struct timeline_event row = {
		.at_ns = torsh_clock_to_ns(&state->clock, stamp),
		.thread = consumer->thread,
		.stack = is_with_stack(cold) ? event->stack_or_site : 0,
		.event = *cold,
	};

	if (event->id == EVENT_OP_READ) {
		translate_fields(state, &row.event);
		torsh_tensor_reads_take(&state->reads, &row.event.op_read, stamp,
					state->steps.current);
		/* Inner operators read what the outer one reads: half of a recording. */
		if (torsh_scopes_is_outermost(&state->scopes, consumer->heap.number))
			add_row(state, &row);
		return;
	}
	if (is_of_task(event->id)) {
		take_task(state, consumer, &row);
		return;
	}
	if (event->id == EVENT_WAITS_SHORTER) {
		torsh_thread_waits_shorter(&state->waits,
					   thread_with(state, cold->waits_shorter.tid,
						       consumer->thread, consumer->thread),
					   cold->waits_shorter.kind, cold->waits_shorter.n,
					   cold->waits_shorter.total_ns);
		return;
	}
	/* Agents never send these. */
	if (event->id == EVENT_HEAP_MARK)
		return;
	translate_fields(state, &row.event);
	if (state->n_pause_edges && (has_paused_counts(state, &consumer->heap, &row.event) ||
				     is_left_out(state, &row.event)))
		return;
	if (is_device_change(event->id)) {
		state->has_device_memory = true;
		state->device_thread = consumer->thread;
		mark_heap(state, consumer->thread, stamp);
		torsh_window_peaks_devices(
			&state->heap, stamp,
			torsh_device_sum_take(&state->devices, cold, consumer->thread));
	}
	update_totals(state, &consumer->heap, &row.event, stamp);
	if (event->id == EVENT_THREAD_WAIT)
		take_wait(state, consumer, &row);
	add_row(state, &row);
}
