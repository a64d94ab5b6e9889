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

void torsh_tally_create(struct tally *tally, const struct channel_view *view, const struct ticks_clock *clock)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;

	*tally = (struct tally){.view = view, .clock = *clock, .next_turn = UINT64_MAX};
	torsh_code_create(&tally->code, view);
	torsh_stacks_create(&tally->stacks);
	torsh_heap_create(&tally->heap, start);
	torsh_mappings_create(&tally->mappings);
	torsh_series_start(&tally->series, start, torsh_ticks_of_ns(clock, SERIES_STEP_NS));
}

void torsh_tally_destroy(struct tally *tally)
{
	torsh_code_destroy(&tally->code);
	torsh_stacks_destroy(&tally->stacks);
	torsh_heap_destroy(&tally->heap);
	torsh_mappings_destroy(&tally->mappings);
	torsh_columns_destroy(tally->columns);
	torsh_timeline_destroy(tally->timeline);
	torsh_step_marks_destroy(&tally->steps);
	torsh_scopes_destroy(&tally->scopes);
	for (uint32_t i = 0; i < tally->n_notes; i++)
		free(tally->notes[i]);
	free(tally->threads);
	free(tally->forks);
	free(tally->turns);
	free(tally->programs);
	*tally = (struct tally){0};
}

void torsh_tally_join(struct tally *tally)
{
	if (tally->joint && !tally->heap.joint)
		torsh_joint_add(tally->joint, &tally->heap, tally->process);
}

void torsh_tally_note(struct tally *tally, const char *format, ...)
{
	char text[NOTE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (uint32_t i = 0; i < tally->n_notes; i++) {
		if (!strcmp(tally->notes[i], text))
			return;
	}
	if (tally->n_notes < TALLY_NOTES_MAX)
		tally->notes[tally->n_notes++] = torsh_memory_text(text);
	else
		tally->losses[WRITER_LOSS_notes_unkept]++;
}

void torsh_tally_turn(struct tally *tally, uint64_t stamp)
{
	tally->turns = torsh_memory_grow(tally->turns, &tally->turn_capacity, tally->n_turns, sizeof(*tally->turns));
	tally->turns[tally->n_turns++] = stamp;
	tally->next_turn = tally->turns[tally->n_turned];
}

uint32_t torsh_tally_add_thread(struct tally *tally, uint32_t tid, const char *name, int is_interrupt, uint64_t stamp)
{
	uint32_t number = tally->n_threads++;
	struct tally_thread *thread;

	tally->threads = torsh_memory_grow(tally->threads, &tally->thread_capacity, number, sizeof(*thread));
	thread = &tally->threads[number];
	*thread = (struct tally_thread){
		.tid = tid,
		.is_interrupt = (uint32_t)is_interrupt,
		.is_changed = true,
		.start_ns = torsh_ticks_to_ns(&tally->clock, stamp),
		.end_stamp = stamp,
	};
	for (uint32_t i = 0; i + 1 < sizeof(thread->name) && name[i]; i++)
		thread->name[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '?';
	return number;
}

static void fold_cold(struct tally *tally, const struct event *event, uint32_t stack)
{
	switch (event->id) {
	case EVENT_LOST:
		tally->lost_allocs += event->lost.allocs;
		tally->lost_frees += event->lost.frees;
		tally->lost_others += event->lost.others;
		break;
	case EVENT_FORK:
		torsh_tally_join(tally);
		tally->forks =
			torsh_memory_grow(tally->forks, &tally->fork_capacity, tally->n_forks, sizeof(*tally->forks));
		tally->forks[tally->n_forks++] = (struct tally_fork){
			.child = event->fork.child,
			.blocks = tally->heap.axis.n,
			.bytes = tally->heap.axis.bytes,
			.n_unknown_frees = tally->heap.unknown_frees,
		};
		break;
	case EVENT_PROGRAM:
		tally->programs = torsh_memory_grow(tally->programs, &tally->program_capacity, tally->n_programs,
						    sizeof(*tally->programs));
		tally->programs[tally->n_programs++] = (struct tally_program){
			.stamp = event->stamp,
			.child = event->program.child,
			.problem = event->program.problem,
			.text = event->program.text,
			.length = event->program.length,
		};
		break;
	case EVENT_IGNORED:
		torsh_heap_ignore(&tally->heap, &tally->stacks, event->stamp, event->ignored.address, stack);
		break;
	case EVENT_EXIT:
		tally->has_exited = 1;
		tally->exit_how = event->exit.how;
		tally->exit_status = event->exit.status;
		tally->exit_stamp = event->stamp;
		break;
	default:
		torsh_mappings_fold(&tally->mappings, &tally->stacks, event, stack);
		break;
	}
}

static void add_point(struct tally *tally, uint64_t stamp)
{
	torsh_series_add(&tally->series, &(struct series_point){
						 .stamp = stamp,
						 .heap_bytes = tally->heap.axis.bytes,
						 .mapped_bytes = tally->mappings.axis.bytes,
						 .rss_bytes = tally->rss_bytes,
					 });
}

/* Does the stack of this event mean something, beside that of its thread? */
static int has_stack(uint32_t id)
{
	return id == EVENT_IGNORED || id == EVENT_MAP || id == EVENT_REMAP || id == EVENT_PROGRAM_BREAK;
}

static void keep_event(struct tally *tally, const struct intake *intake, uint32_t i, uint64_t stamp)
{
	const struct intake_event *event = &intake->events[i];
	struct columns_event row = {.at_ns = torsh_ticks_to_ns(&tally->clock, stamp), .thread = intake->thread};
	int result;

	switch (event->id) {
	case EVENT_ALLOC:
		row.stack = tally->heap.sites[event->place].stack;
		row.event.alloc = (struct event_alloc){
			.address = event->address, .size = event->size, .usable = event->usable, .entry = event->entry};
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		row.event.free.address = event->address;
		break;
	default:
		row.event = intake->cold[i];
		row.stack = has_stack(event->id) ? event->place : 0;
		break;
	}
	row.event.id = event->id;
	result = torsh_columns_add(tally->columns, &row);
	if (result) {
		tally->columns_failed = result;
		tally->losses[WRITER_LOSS_events_unkept]++;
	}
}

static void pass_turns(struct tally *tally, uint64_t stamp)
{
	while (tally->n_turned < tally->n_turns && tally->turns[tally->n_turned] <= stamp)
		tally->n_turned++;
	tally->next_turn = tally->n_turned < tally->n_turns ? tally->turns[tally->n_turned] : UINT64_MAX;
	tally->heap.was_paused = 1;
}

/* Labels become numbers that the recording has, moments times on its axis. */
static void translate_fields(struct tally *tally, struct event *event)
{
#define TRANSLATE_u32(field)
#define TRANSLATE_i32(field)
#define TRANSLATE_u64(field)
#define TRANSLATE_label(field) (field) = torsh_code_label(&tally->code, field);
#define TRANSLATE_moment(field) (field) = torsh_ticks_of_moment(&tally->clock, field);
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

static void mark_tensor(struct tally *tally, const struct event_tensor *tensor)
{
	const struct live_block *block;

	if (tensor->is_free || tensor->device || !tensor->address)
		return;
	block = torsh_live_find(&tally->heap.live, tensor->address);
	if (block)
		tally->heap.sites[block->site].is_of_tensors = 1;
}

#define TENSOR_ON_CUDA 1u /* c10's number of the type of device */

static void note_refusal(struct tally *tally, const struct event_device_refused *refused)
{
	char device[DEVICE_NAME_BYTES], bytes[SIZE_TEXT_BYTES];

	if (tally->has_refusals)
		return;
	tally->has_refusals = 1;
	torsh_tally_note(
		tally,
		"a device was out of memory: %s of %s were refused; torsh peak --device says when, where, how often",
		refused->flags & BLOCK_IS_UNSIZED ? "some" : torsh_size_exact(refused->bytes, bytes),
		torsh_device_name(TENSOR_ON_CUDA << 8 | (refused->device & 0xff), device));
}

/* What the totals take from an event of the timeline; its labels are numbers already. */
static void learn(struct tally *tally, struct heap_flow *flow, const struct event *event, uint64_t stamp)
{
	const char *name = NULL;
	int is_step;

	flow->scope = torsh_scopes_take(&tally->scopes, flow->number, event);
	if (event->id == EVENT_TENSOR)
		mark_tensor(tally, &event->tensor);
	if (event->id == EVENT_DEVICE_REFUSED)
		note_refusal(tally, &event->device_refused);
	if (event->id == EVENT_OUT_OF_MEMORY) {
		tally->is_out_of_memory = 1;
		tally->out_of_memory = (struct tally_out_of_memory){
			.stamp = stamp,
			.operator= flow->scope->operator,
			.module = flow->scope->module,
			.event = event->out_of_memory,
		};
	}
	if (event->id == EVENT_OP_BEGIN && event->op_begin.scope == OP_USER && event->op_begin.name)
		name = tally->code.functions[event->op_begin.name - 1].name;
	is_step = torsh_step_marks_take(&tally->steps, event, name, stamp);
	if (tally->steps.current != tally->heap.step_name)
		torsh_heap_name_step(&tally->heap, stamp, tally->steps.current,
				     tally->steps.told_by == STEP_BY_OPTIMIZER);
	if (is_step)
		torsh_heap_mark_step(&tally->heap, stamp);
}

static void add_row(struct tally *tally, const struct timeline_event *row)
{
	if (tally->timeline_failed) {
		tally->losses[WRITER_LOSS_timeline_unkept]++;
		return;
	}
	if (!tally->timeline)
		tally->timeline = torsh_timeline_create();
	tally->timeline_failed = tally->timeline ? torsh_timeline_add(tally->timeline, row) : -ENOMEM;
	tally->losses[WRITER_LOSS_timeline_unkept] += tally->timeline_failed != 0;
}

static void mark_heap(struct tally *tally, uint32_t thread, uint64_t stamp)
{
	struct timeline_event row = {
		.at_ns = torsh_ticks_to_ns(&tally->clock, stamp),
		.thread = thread,
		.event = {.id = EVENT_HEAP_MARK, .heap_mark = {.heap_bytes = tally->heap.axis.bytes}},
	};
	uint64_t peak_stamp;

	torsh_axis_mark(&tally->heap.axis, stamp, &row.event.heap_mark.peak_bytes, &peak_stamp);
	row.event.heap_mark.peak_ns = torsh_ticks_to_ns(&tally->clock, peak_stamp);
	add_row(tally, &row);
}

void torsh_tally_mark_heap(struct tally *tally)
{
	if (tally->has_device_memory)
		mark_heap(tally, tally->device_thread, tally->last_stamp);
}

/* Does the memory of devices change with it? */
static int is_device_change(uint32_t id)
{
	return id == EVENT_DEVICE_ALLOC || id == EVENT_DEVICE_FREE || id == EVENT_DEVICE_FREE_FAILED ||
	       id == EVENT_GRAPH_LAUNCH;
}

static void keep_timeline(struct tally *tally, struct intake *intake, const struct intake_event *event,
			  const struct event *cold, uint64_t stamp)
{
	struct timeline_event row = {
		.at_ns = torsh_ticks_to_ns(&tally->clock, stamp),
		.thread = intake->thread,
		.stack = is_with_stack(cold) ? event->place : 0,
		.event = *cold,
	};

	/* No agent sends these. */
	if (event->id == EVENT_HEAP_MARK)
		return;
	if (is_device_change(event->id)) {
		tally->has_device_memory = 1;
		tally->device_thread = intake->thread;
		mark_heap(tally, intake->thread, stamp);
	}
	translate_fields(tally, &row.event);
	learn(tally, &intake->heap, &row.event, stamp);
	add_row(tally, &row);
}

static uint64_t take_stamp(struct tally *tally, uint64_t stamp)
{
	if (__builtin_expect(stamp < tally->last_stamp, 0)) {
		tally->late_events++;
		return tally->last_stamp;
	}
	tally->last_stamp = stamp;
	if (__builtin_expect(stamp >= tally->series.next_stamp, 0))
		add_point(tally, stamp);
	if (__builtin_expect(stamp >= tally->next_turn, 0))
		pass_turns(tally, stamp);
	return stamp;
}

/*
 * What a pause changes: a new block is not recorded, a known one that a realloc moves stays that of its stack.
 * Returns 0 where nothing of the event is left.
 */
static int take_pause(struct tally *tally, struct intake *intake, uint32_t i, uint64_t stamp)
{
	struct intake_event *event = &intake->events[i];

	/* What a thread allocated in between was not seen: its next free is of no temporary block. */
	if (intake->heap.n_turned != tally->n_turned)
		intake->heap.last_alloc = 0;
	intake->heap.n_turned = tally->n_turned;
	if (event->id != EVENT_ALLOC)
		return 1;
	/* An agent that saw the pause sends no stack, though the pause may be over when the event is stamped. */
	if (event->entry == ALLOC_REALLOC && intake->heap.is_reallocating && (tally->n_turned & 1 || !event->place)) {
		event->place = intake->heap.old.site;
		return 1;
	}
	if (!(tally->n_turned & 1))
		return 1;
	if (event->entry == ALLOC_REALLOC)
		torsh_heap_end_unknown(&tally->heap, &intake->heap);
	torsh_heap_forget(&tally->heap, stamp, event->address);
	return 0;
}

void torsh_tally_fold(struct tally *tally, struct intake *intake, uint32_t i)
{
	const struct intake_event *event = &intake->events[i];
	uint64_t stamp = take_stamp(tally, event->stamp);

	tally->n_folded++;
	if (__builtin_expect(tally->n_turned, 0) && !take_pause(tally, intake, i, stamp))
		return;
	if (EVENT_IS_TIMELINE(event->id)) {
		keep_timeline(tally, intake, event, &intake->cold[i], stamp);
		return;
	}
	/* The writer makes rows of program events: what they say is the channel's. */
	if (tally->columns && event->id != EVENT_PROGRAM)
		keep_event(tally, intake, i, stamp);
	else if (__builtin_expect(tally->columns_failed, 0))
		tally->losses[WRITER_LOSS_events_unkept]++;
	switch (event->id) {
	case EVENT_ALLOC:
		torsh_heap_alloc(&tally->heap, &intake->heap,
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
		torsh_heap_free(&tally->heap, &intake->heap, stamp, event->address);
		break;
	case EVENT_REALLOC_BEGIN:
		torsh_heap_realloc_begin(&tally->heap, &intake->heap, stamp, event->address);
		break;
	case EVENT_REALLOC_FAILED:
		torsh_heap_realloc_failed(&tally->heap, &intake->heap, stamp);
		break;
	case EVENT_EXEC:
		tally->has_executed = !intake->cold[i].exec.failed;
		tally->exec_stamp = stamp;
		tally->exec_own_stamp = event->stamp;
		tally->exec_thread = intake->thread;
		break;
	default:
		/* Its own stamp may be late; what is folded here goes forward. */
		intake->cold[i].stamp = stamp;
		fold_cold(tally, &intake->cold[i], event->place);
		break;
	}
}

bool torsh_tally_is_executing(const struct tally *tally)
{
	return tally->has_executed && tally->threads[tally->exec_thread].end_stamp <= tally->exec_own_stamp;
}

void torsh_tally_end_intake(struct tally *tally, struct intake *intake)
{
	struct tally_thread *thread = &tally->threads[intake->thread];

	torsh_heap_realloc_failed(&tally->heap, &intake->heap, tally->last_stamp);
	torsh_scopes_end(&tally->scopes, intake->heap.number);
	intake->heap.scope = NULL;
	thread->is_changed = true;
	thread->end_stamp = intake->codec.stamp;
	thread->allocs = intake->heap.allocs;
	thread->alloc_bytes = intake->heap.alloc_bytes;
	thread->frees = intake->heap.frees;
}
