/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/process_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/device.h"
#include "tools/base/memory.h"
#include "tools/base/size.h"

#define SERIES_STEP_NS 1000000u
#define NOTE_MAX 1024u

void torsh_process_state_create(struct process_state *process_state,
				const struct channel_view *view,
				const struct clock_conversion *clock)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;

	*process_state =
		(struct process_state){.view = view, .clock = *clock, .next_turn = UINT64_MAX};
	torsh_code_create(&process_state->code, view);
	torsh_stacks_create(&process_state->stacks);
	torsh_heap_create(&process_state->heap, start);
	torsh_mappings_create(&process_state->mappings);
	torsh_series_start(&process_state->series, start, torsh_ticks_of_ns(clock, SERIES_STEP_NS));
}

void torsh_process_state_destroy(struct process_state *process_state)
{
	torsh_code_destroy(&process_state->code);
	torsh_stacks_destroy(&process_state->stacks);
	torsh_heap_destroy(&process_state->heap);
	torsh_mappings_destroy(&process_state->mappings);
	torsh_columns_destroy(process_state->columns);
	torsh_timeline_destroy(process_state->timeline);
	torsh_step_marks_destroy(&process_state->steps);
	torsh_scopes_destroy(&process_state->scopes);
	for (uint32_t i = 0; i < process_state->n_notes; i++)
		free(process_state->notes[i]);
	free(process_state->threads);
	free(process_state->forks);
	free(process_state->turns);
	free(process_state->programs);
	*process_state = (struct process_state){0};
}

void torsh_process_state_join(struct process_state *process_state)
{
	if (process_state->session_heap && !process_state->heap.session_heap)
		torsh_session_heap_add(process_state->session_heap, &process_state->heap,
				       process_state->process);
}

void torsh_process_state_note(struct process_state *process_state, const char *format, ...)
{
	char text[NOTE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (uint32_t i = 0; i < process_state->n_notes; i++) {
		if (!strcmp(process_state->notes[i], text))
			return;
	}
	if (process_state->n_notes < PROCESS_STATE_NOTES_MAX)
		process_state->notes[process_state->n_notes++] = torsh_memory_text(text);
	else
		process_state->losses[WRITER_LOSS_notes_unkept]++;
}

void torsh_process_state_turn(struct process_state *process_state, uint64_t stamp)
{
	process_state->turns =
		torsh_memory_grow(process_state->turns, &process_state->turn_capacity,
				  process_state->n_turns, sizeof(*process_state->turns));
	process_state->turns[process_state->n_turns++] = stamp;
	process_state->next_turn = process_state->turns[process_state->n_turned];
}

uint32_t torsh_process_state_add_thread(struct process_state *process_state, uint32_t tid,
					const char *name, int is_interrupt, uint64_t stamp)
{
	uint32_t number = process_state->n_threads++;
	struct folded_thread *thread;

	process_state->threads = torsh_memory_grow(
		process_state->threads, &process_state->thread_capacity, number, sizeof(*thread));
	thread = &process_state->threads[number];
	*thread = (struct folded_thread){
		.tid = tid,
		.is_interrupt = (uint32_t)is_interrupt,
		.is_changed = true,
		.start_ns = torsh_ticks_to_ns(&process_state->clock, stamp),
		.end_stamp = stamp,
	};
	for (uint32_t i = 0; i + 1 < sizeof(thread->name) && name[i]; i++)
		thread->name[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '?';
	return number;
}

static void fold_cold(struct process_state *process_state, const struct event *event,
		      uint32_t stack)
{
	switch (event->id) {
	case EVENT_LOST:
		process_state->lost_allocs += event->lost.allocs;
		process_state->lost_frees += event->lost.frees;
		process_state->lost_others += event->lost.others;
		break;
	case EVENT_FORK:
		torsh_process_state_join(process_state);
		process_state->forks =
			torsh_memory_grow(process_state->forks, &process_state->fork_capacity,
					  process_state->n_forks, sizeof(*process_state->forks));
		process_state->forks[process_state->n_forks++] = (struct folded_fork){
			.child = event->fork.child,
			.blocks = process_state->heap.tracker.n,
			.bytes = process_state->heap.tracker.bytes,
			.n_unknown_frees = process_state->heap.unknown_frees,
		};
		break;
	case EVENT_PROGRAM:
		process_state->programs = torsh_memory_grow(
			process_state->programs, &process_state->program_capacity,
			process_state->n_programs, sizeof(*process_state->programs));
		process_state->programs[process_state->n_programs++] = (struct folded_program){
			.stamp = event->stamp,
			.child = event->program.child,
			.problem = event->program.problem,
			.text = event->program.text,
			.length = event->program.length,
		};
		break;
	case EVENT_IGNORED:
		torsh_heap_ignore(&process_state->heap, &process_state->stacks, event->stamp,
				  event->ignored.address, stack);
		break;
	case EVENT_EXIT:
		process_state->has_exited = 1;
		process_state->exit_how = event->exit.how;
		process_state->exit_status = event->exit.status;
		process_state->exit_stamp = event->stamp;
		break;
	default:
		torsh_mappings_fold(&process_state->mappings, &process_state->stacks, event, stack);
		break;
	}
}

static void add_point(struct process_state *process_state, uint64_t stamp)
{
	torsh_series_add(&process_state->series,
			 &(struct series_point){
				 .stamp = stamp,
				 .heap_bytes = process_state->heap.tracker.bytes,
				 .mapped_bytes = process_state->mappings.tracker.bytes,
				 .rss_bytes = process_state->rss_bytes,
			 });
}

/* Does the stack of this event mean something, beside that of its thread? */
static int has_stack(uint32_t id)
{
	return id == EVENT_IGNORED || id == EVENT_MAP || id == EVENT_REMAP ||
	       id == EVENT_PROGRAM_BREAK;
}

static void keep_event(struct process_state *process_state, const struct ring_consumer *consumer,
		       uint32_t i, uint64_t stamp)
{
	const struct consumed_event *event = &consumer->events[i];
	struct columns_event row = {.at_ns = torsh_ticks_to_ns(&process_state->clock, stamp),
				    .thread = consumer->thread};
	int result;

	switch (event->id) {
	case EVENT_ALLOC:
		row.stack = process_state->heap.sites[event->place].stack;
		row.event.alloc = (struct event_alloc){.address = event->address,
						       .size = event->size,
						       .usable = event->usable,
						       .entry = event->entry};
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		row.event.free.address = event->address;
		break;
	default:
		row.event = consumer->cold[i];
		row.stack = has_stack(event->id) ? event->place : 0;
		break;
	}
	row.event.id = event->id;
	result = torsh_columns_add(process_state->columns, &row);
	if (result) {
		process_state->columns_failed = result;
		process_state->losses[WRITER_LOSS_events_unkept]++;
	}
}

static void pass_turns(struct process_state *process_state, uint64_t stamp)
{
	while (process_state->n_turned < process_state->n_turns &&
	       process_state->turns[process_state->n_turned] <= stamp)
		process_state->n_turned++;
	process_state->next_turn = process_state->n_turned < process_state->n_turns
					   ? process_state->turns[process_state->n_turned]
					   : UINT64_MAX;
	process_state->heap.was_paused = 1;
}

/* Labels become numbers that the recording has, moments times on its peak tracker. */
static void translate_fields(struct process_state *process_state, struct event *event)
{
#define TRANSLATE_u32(field)
#define TRANSLATE_i32(field)
#define TRANSLATE_u64(field)
#define TRANSLATE_label(field) (field) = torsh_code_label(&process_state->code, field);
#define TRANSLATE_moment(field) (field) = torsh_ticks_of_moment(&process_state->clock, field);
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

/* Whose stack is the thread's of that moment; of the others it is an older one. */
static int is_with_stack(const struct event *event)
{
	switch (event->id) {
	case EVENT_OP_BEGIN:
		return event->op_begin.flags & OP_HAS_STACK;
	case EVENT_TENSOR:
		return !event->tensor.is_free;
	case EVENT_LAUNCH:
		return event->launch.flags & CALL_HAS_STACK;
	case EVENT_GRAPH_NODE:
		return event->graph_node.flags & CALL_HAS_STACK;
	case EVENT_GRAPH_MEMORY:
		return !event->graph_memory.is_free;
	case EVENT_DEVICE_ALLOC:
	case EVENT_DEVICE_REFUSED:
		return 1;
	default:
		return event->id == EVENT_OUT_OF_MEMORY;
	}
}

static void mark_tensor(struct process_state *process_state, const struct event_tensor *tensor)
{
	const struct live_block *block;

	if (tensor->is_free || tensor->device || !tensor->address)
		return;
	block = torsh_live_find(&process_state->heap.live, tensor->address);
	if (block)
		process_state->heap.sites[block->site].is_of_tensors = 1;
}

#define TENSOR_ON_CUDA 1u /* c10's number of the type of device */

static void note_refusal(struct process_state *process_state,
			 const struct event_device_refused *refused)
{
	char device[DEVICE_NAME_BYTES], bytes[SIZE_TEXT_BYTES];

	if (process_state->has_refusals)
		return;
	process_state->has_refusals = 1;
	torsh_process_state_note(
		process_state,
		"a device was out of memory: %s of %s were refused; torsh peak --device says when, where, how often",
		refused->flags & BLOCK_IS_UNSIZED ? "some"
						  : torsh_size_exact(refused->bytes, bytes),
		torsh_device_name(TENSOR_ON_CUDA << 8 | (refused->device & 0xff), device));
}

/* What the totals take from an event of the timeline; its labels are numbers already. */
static void learn(struct process_state *process_state, struct heap_producer *producer,
		  const struct event *event, uint64_t stamp)
{
	const char *name = NULL;
	int is_step;

	producer->scope = torsh_scopes_take(&process_state->scopes, producer->number, event);
	if (event->id == EVENT_TENSOR)
		mark_tensor(process_state, &event->tensor);
	if (event->id == EVENT_DEVICE_REFUSED)
		note_refusal(process_state, &event->device_refused);
	if (event->id == EVENT_OUT_OF_MEMORY) {
		process_state->is_out_of_memory = 1;
		process_state->out_of_memory = (struct folded_out_of_memory){
			.stamp = stamp,
			.operator= producer->scope->operator,
			.module = producer->scope->module,
			.event = event->out_of_memory,
		};
	}
	if (event->id == EVENT_OP_BEGIN && event->op_begin.scope == OP_USER && event->op_begin.name)
		name = process_state->code.functions[event->op_begin.name - 1].name;
	is_step = torsh_step_marks_take(&process_state->steps, event, name, stamp);
	if (process_state->steps.current != process_state->heap.step_name)
		torsh_heap_name_step(&process_state->heap, stamp, process_state->steps.current,
				     process_state->steps.told_by == STEP_BY_OPTIMIZER);
	if (is_step)
		torsh_heap_mark_step(&process_state->heap, stamp);
}

static void add_row(struct process_state *process_state, const struct timeline_event *row)
{
	if (process_state->timeline_failed) {
		process_state->losses[WRITER_LOSS_timeline_unkept]++;
		return;
	}
	if (!process_state->timeline)
		process_state->timeline = torsh_timeline_create();
	process_state->timeline_failed = process_state->timeline
						 ? torsh_timeline_add(process_state->timeline, row)
						 : -ENOMEM;
	process_state->losses[WRITER_LOSS_timeline_unkept] += process_state->timeline_failed != 0;
}

static void mark_heap(struct process_state *process_state, uint32_t thread, uint64_t stamp)
{
	struct timeline_event row = {
		.at_ns = torsh_ticks_to_ns(&process_state->clock, stamp),
		.thread = thread,
		.event = {.id = EVENT_HEAP_MARK,
			  .heap_mark = {.heap_bytes = process_state->heap.tracker.bytes}},
	};
	uint64_t peak_stamp;

	torsh_peak_tracker_mark(&process_state->heap.tracker, stamp,
				&row.event.heap_mark.peak_bytes, &peak_stamp);
	row.event.heap_mark.peak_ns = torsh_ticks_to_ns(&process_state->clock, peak_stamp);
	add_row(process_state, &row);
}

void torsh_process_state_mark_heap(struct process_state *process_state)
{
	if (process_state->has_device_memory)
		mark_heap(process_state, process_state->device_thread, process_state->last_stamp);
}

/* Does the memory of devices change with it? */
static int is_device_change(uint32_t id)
{
	return id == EVENT_DEVICE_ALLOC || id == EVENT_DEVICE_FREE ||
	       id == EVENT_DEVICE_FREE_FAILED || id == EVENT_GRAPH_LAUNCH;
}

static void keep_timeline(struct process_state *process_state, struct ring_consumer *consumer,
			  const struct consumed_event *event, const struct event *cold,
			  uint64_t stamp)
{
	struct timeline_event row = {
		.at_ns = torsh_ticks_to_ns(&process_state->clock, stamp),
		.thread = consumer->thread,
		.stack = is_with_stack(cold) ? event->place : 0,
		.event = *cold,
	};

	/* No agent sends these. */
	if (event->id == EVENT_HEAP_MARK)
		return;
	if (is_device_change(event->id)) {
		process_state->has_device_memory = 1;
		process_state->device_thread = consumer->thread;
		mark_heap(process_state, consumer->thread, stamp);
	}
	translate_fields(process_state, &row.event);
	learn(process_state, &consumer->heap, &row.event, stamp);
	add_row(process_state, &row);
}

static uint64_t take_stamp(struct process_state *process_state, uint64_t stamp)
{
	if (__builtin_expect(stamp < process_state->last_stamp, 0)) {
		process_state->late_events++;
		return process_state->last_stamp;
	}
	process_state->last_stamp = stamp;
	if (__builtin_expect(stamp >= process_state->series.next_stamp, 0))
		add_point(process_state, stamp);
	if (__builtin_expect(stamp >= process_state->next_turn, 0))
		pass_turns(process_state, stamp);
	return stamp;
}

/*
 * What a pause changes: a new block is not recorded, a known one that a realloc moves stays that of
 * its stack. Returns 0 where nothing of the event is left.
 */
static int take_pause(struct process_state *process_state, struct ring_consumer *consumer,
		      uint32_t i, uint64_t stamp)
{
	struct consumed_event *event = &consumer->events[i];

	/*
	 * What a thread allocated in between was not seen: its next free is of no temporary block.
	 */
	if (consumer->heap.n_turned != process_state->n_turned)
		consumer->heap.last_alloc = 0;
	consumer->heap.n_turned = process_state->n_turned;
	if (event->id != EVENT_ALLOC)
		return 1;
	/*
	 * An agent that saw the pause sends no stack, though the pause may be over when the event
	 * is stamped.
	 */
	if (event->entry == ALLOC_REALLOC && consumer->heap.is_reallocating &&
	    (process_state->n_turned & 1 || !event->place)) {
		event->place = consumer->heap.old.site;
		return 1;
	}
	if (!(process_state->n_turned & 1))
		return 1;
	if (event->entry == ALLOC_REALLOC)
		torsh_heap_end_unknown(&process_state->heap, &consumer->heap);
	torsh_heap_forget(&process_state->heap, stamp, event->address);
	return 0;
}

void torsh_process_state_fold(struct process_state *process_state, struct ring_consumer *consumer,
			      uint32_t i)
{
	const struct consumed_event *event = &consumer->events[i];
	uint64_t stamp = take_stamp(process_state, event->stamp);

	process_state->n_folded++;
	if (__builtin_expect(process_state->n_turned, 0) &&
	    !take_pause(process_state, consumer, i, stamp))
		return;
	if (EVENT_IS_TIMELINE(event->id)) {
		keep_timeline(process_state, consumer, event, &consumer->cold[i], stamp);
		return;
	}
	/* The writer makes rows of program events: what they say is the channel's. */
	if (process_state->columns && event->id != EVENT_PROGRAM)
		keep_event(process_state, consumer, i, stamp);
	else if (__builtin_expect(process_state->columns_failed, 0))
		process_state->losses[WRITER_LOSS_events_unkept]++;
	switch (event->id) {
	case EVENT_ALLOC:
		torsh_heap_alloc(&process_state->heap, &consumer->heap,
				 &(struct heap_alloc){
					 .stamp = stamp,
					 .address = event->address,
					 .size = event->size,
					 .usable = event->usable,
					 .site = event->place,
					 .is_realloc = event->entry == ALLOC_REALLOC,
				 });
		break;
	case EVENT_FREE:
		torsh_heap_free(&process_state->heap, &consumer->heap, stamp, event->address);
		break;
	case EVENT_REALLOC_BEGIN:
		torsh_heap_realloc_begin(&process_state->heap, &consumer->heap, stamp,
					 event->address);
		break;
	case EVENT_REALLOC_FAILED:
		torsh_heap_realloc_failed(&process_state->heap, &consumer->heap, stamp);
		break;
	case EVENT_EXEC:
		process_state->has_executed = !consumer->cold[i].exec.failed;
		process_state->exec_stamp = stamp;
		process_state->exec_own_stamp = event->stamp;
		process_state->exec_thread = consumer->thread;
		break;
	default:
		/* Its own stamp may be late; what is folded here goes forward. */
		consumer->cold[i].stamp = stamp;
		fold_cold(process_state, &consumer->cold[i], event->place);
		break;
	}
}

bool torsh_process_state_is_executing(const struct process_state *process_state)
{
	return process_state->has_executed &&
	       process_state->threads[process_state->exec_thread].end_stamp <=
		       process_state->exec_own_stamp;
}

void torsh_process_state_end_consumer(struct process_state *process_state,
				      struct ring_consumer *consumer)
{
	struct folded_thread *thread = &process_state->threads[consumer->thread];

	torsh_heap_realloc_failed(&process_state->heap, &consumer->heap, process_state->last_stamp);
	torsh_scopes_end(&process_state->scopes, consumer->heap.number);
	consumer->heap.scope = NULL;
	thread->is_changed = true;
	thread->end_stamp = consumer->codec.stamp;
	thread->allocs = consumer->heap.allocs;
	thread->alloc_bytes = consumer->heap.alloc_bytes;
	thread->frees = consumer->heap.frees;
}
