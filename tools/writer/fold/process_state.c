/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/process_state.h"

#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/process_timeline.h"

#define SERIES_STEP_NS 1000000u

void torsh_process_state_create(struct process_state *state, const struct channel_view *view,
				const struct clock_conversion *clock, struct program_tables *tables,
				uint32_t process)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;

	*state = (struct process_state){
		.view = view,
		.clock = *clock,
		.tables = tables,
		.process = process,
		.next_pause_edge = UINT64_MAX,
	};
	torsh_program_tables_join(tables);
	torsh_process_code_create(&state->code, view, &tables->code, process);
	torsh_heap_create(&state->heap, start);
	torsh_mappings_create(&state->mappings);
	torsh_key_index_create(&state->threads_by_tid);
	torsh_series_start(&state->series, start, torsh_clock_stamps_of_ns(clock, SERIES_STEP_NS));
	state->resident.due_stamp = RESIDENT_PEAK_NONE;
	state->next_due_stamp = state->series.next_stamp;
}

void torsh_process_state_end_folding(struct process_state *state)
{
	torsh_number_index_destroy(&state->heap.site_index);
	if (state->tables->n_users > 1)
		return;
	torsh_number_index_destroy(&state->tables->stacks.index);
	torsh_code_end(&state->tables->code);
}

void torsh_process_state_free_tables(struct process_state *state)
{
	torsh_moments_destroy(&state->heap.moments);
	if (state->tables->n_users == 1)
		torsh_stacks_destroy(&state->tables->stacks);
}

void torsh_process_state_destroy(struct process_state *state)
{
	torsh_process_code_destroy(&state->code);
	if (state->tables)
		torsh_program_tables_leave(state->tables);
	torsh_heap_destroy(&state->heap);
	torsh_mappings_destroy(&state->mappings);
	torsh_columns_destroy(state->columns);
	torsh_timeline_destroy(state->timeline);
	torsh_timeline_destroy(state->definitions);
	torsh_step_marks_destroy(&state->steps);
	torsh_scopes_destroy(&state->scopes);
	torsh_tensor_reads_free(&state->reads);
	torsh_thread_waits_free(&state->waits);
	torsh_library_calls_free(&state->library_calls);
	torsh_tasks_destroy(&state->tasks);
	torsh_device_sum_destroy(&state->devices);
	for (uint32_t i = 0; i < state->n_notes; i++)
		free(state->notes[i]);
	torsh_key_index_destroy(&state->threads_by_tid);
	free(state->threads);
	free(state->forks);
	free(state->pause_edges);
	torsh_paused_events_destroy(&state->paused);
	free(state->programs);
	*state = (struct process_state){0};
}

void torsh_process_state_join(struct process_state *state)
{
	if (state->session_heap && !state->heap.session_heap)
		torsh_session_heap_add(state->session_heap, &state->heap, state->process);
}

void torsh_process_state_note(struct process_state *state, const char *format, ...)
{
	char text[PROCESS_STATE_NOTE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (uint32_t i = 0; i < state->n_notes; i++) {
		if (!strcmp(state->notes[i], text))
			return;
	}
	if (state->n_notes < PROCESS_STATE_NOTES_MAX)
		state->notes[state->n_notes++] = torsh_memory_text(text);
	else
		state->losses[WRITER_LOSS_notes_unkept]++;
}

bool torsh_process_state_forget_note(struct process_state *state, const char *beginning)
{
	uint32_t i = 0;

	while (i < state->n_notes && strncmp(state->notes[i], beginning, strlen(beginning)) != 0)
		i++;
	if (i == state->n_notes)
		return false;
	free(state->notes[i]);
	state->n_notes--;
	memmove(&state->notes[i], &state->notes[i + 1],
		(state->n_notes - i) * sizeof(*state->notes));
	return true;
}

void torsh_process_state_add_pause_edge(struct process_state *state, uint64_t stamp)
{
	state->pause_edges =
		torsh_array_reserve(state->pause_edges, state->n_pause_edges,
				    &state->pause_edge_capacity, sizeof(*state->pause_edges));
	state->pause_edges[state->n_pause_edges++] = stamp;
	state->next_pause_edge = state->pause_edges[state->n_edges_passed];
}

uint32_t torsh_process_state_add_thread(struct process_state *state, uint32_t tid, const char *name,
					bool is_interrupt, uint64_t stamp)
{
	uint32_t number = state->n_threads++;
	struct folded_thread *thread;
	struct key_slot *slot;

	state->threads = torsh_array_reserve(state->threads, number, &state->thread_capacity,
					     sizeof(*thread));
	thread = &state->threads[number];
	*thread = (struct folded_thread){
		.tid = tid,
		.is_interrupt = (uint32_t)is_interrupt,
		.is_changed = true,
		.start_ns = torsh_clock_to_ns(&state->clock, stamp),
		.end_stamp = stamp,
	};
	for (uint32_t i = 0; i + 1 < sizeof(thread->name) && name[i]; i++)
		thread->name[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '?';
	if (!tid || is_interrupt)
		return number;
	slot = torsh_key_index_find(&state->threads_by_tid, tid);
	if (slot->key)
		slot->number = number;
	else
		torsh_key_index_fill(&state->threads_by_tid, slot, tid, number);
	return number;
}

uint32_t torsh_process_state_thread(const struct process_state *state, uint32_t tid)
{
	const struct key_slot *slot = torsh_key_index_find(&state->threads_by_tid, tid);

	return tid && slot->key ? slot->number : UINT32_MAX;
}

static void fold_cold(struct process_state *state, const struct event *event, uint32_t stack)
{
	switch (event->id) {
	case EVENT_LOST:
		state->lost_allocs += event->lost.allocs;
		state->lost_frees += event->lost.frees;
		state->lost_others += event->lost.others;
		break;
	case EVENT_FORK:
		torsh_process_state_join(state);
		state->forks = torsh_array_reserve(state->forks, state->n_forks,
						   &state->fork_capacity, sizeof(*state->forks));
		state->forks[state->n_forks++] = (struct folded_fork){
			.child = event->fork.child,
			.blocks = state->heap.tracker.n,
			.bytes = state->heap.tracker.bytes,
			.n_unknown_frees = state->heap.unknown_frees,
		};
		break;
	case EVENT_PROGRAM:
		state->programs =
			torsh_array_reserve(state->programs, state->n_programs,
					    &state->program_capacity, sizeof(*state->programs));
		state->programs[state->n_programs++] = (struct folded_program){
			.stamp = event->stamp,
			.begin_monotonic_ns = event->program.begin,
			.child = event->program.child,
			.problem = event->program.problem,
			.text = event->program.text,
			.length = event->program.length,
		};
		break;
	case EVENT_IGNORED:
		torsh_heap_ignore(&state->heap, &state->tables->stacks, event->stamp,
				  event->ignored.address, stack);
		break;
	case EVENT_EXIT:
		state->has_exited = true;
		state->exit_how = event->exit.how;
		state->exit_status = event->exit.status;
		state->exit_stamp = event->stamp;
		break;
	default:
		torsh_mappings_fold(&state->mappings, event, stack);
		break;
	}
}

static void find_due(struct process_state *state)
{
	state->next_due_stamp = state->resident.due_stamp < state->series.next_stamp
					? state->resident.due_stamp
					: state->series.next_stamp;
}

void torsh_process_state_sample(struct process_state *state, uint64_t stamp, uint64_t rss_bytes)
{
	state->rss_bytes = rss_bytes;
	if (torsh_resident_peak_sample(&state->resident, stamp, rss_bytes,
				       torsh_clock_stamps_of_ns(&state->clock, RESIDENT_PEAK_NS)))
		find_due(state);
}

void torsh_process_state_end_samples(struct process_state *state)
{
	if (state->resident.due_stamp != RESIDENT_PEAK_NONE)
		torsh_moments_resident(&state->heap, state->resident.due_stamp,
				       state->resident.due_bytes);
	state->resident.due_stamp = RESIDENT_PEAK_NONE;
	find_due(state);
}

static void add_point(struct process_state *state, uint64_t stamp)
{
	torsh_series_add(&state->series, &(struct series_point){
						 .stamp = stamp,
						 .heap_bytes = state->heap.tracker.bytes,
						 .mapped_bytes = state->mappings.tracker.bytes,
						 .rss_bytes = state->rss_bytes,
					 });
	torsh_moments_point(&state->heap, stamp, state->series.step);
}

/* The next event is at the stamp, and something is due before it. */
static __attribute__((noinline)) void take_due(struct process_state *state, uint64_t stamp)
{
	if (stamp >= state->resident.due_stamp)
		torsh_process_state_end_samples(state);
	if (stamp >= state->series.next_stamp)
		add_point(state, stamp);
	find_due(state);
}

/* Returns true if the event carries its own stack. */
static bool has_stack(uint32_t id)
{
	return id == EVENT_IGNORED || id == EVENT_MAP || id == EVENT_REMAP ||
	       id == EVENT_PROGRAM_BREAK;
}

static void keep_event(struct process_state *state, const struct ring_consumer *consumer,
		       uint32_t i, uint64_t stamp)
{
	const struct consumed_event *event = &consumer->events[i];
	struct columns_event row = {.at_ns = torsh_clock_to_ns(&state->clock, stamp),
				    .thread = consumer->thread};
	int result;

	switch (event->id) {
	case EVENT_ALLOC:
		row.stack = state->heap.sites[event->stack_or_site].stack;
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
		row.stack = has_stack(event->id) ? event->stack_or_site : 0;
		break;
	}
	row.event.id = event->id;
	result = torsh_columns_add(state->columns, &row);
	if (result) {
		state->columns_failed = result;
		state->losses[WRITER_LOSS_events_unkept]++;
	}
}

static void pass_pause_edges(struct process_state *state, uint64_t stamp)
{
	while (state->n_edges_passed < state->n_pause_edges &&
	       state->pause_edges[state->n_edges_passed] <= stamp)
		state->n_edges_passed++;
	state->next_pause_edge = state->n_edges_passed < state->n_pause_edges
					 ? state->pause_edges[state->n_edges_passed]
					 : UINT64_MAX;
	state->heap.was_paused = true;
}

static uint64_t take_stamp(struct process_state *state, uint64_t stamp)
{
	if (__builtin_expect(stamp < state->last_stamp, 0)) {
		state->late_events++;
		return state->last_stamp;
	}
	state->last_stamp = stamp;
	if (__builtin_expect(stamp >= state->next_due_stamp, 0))
		take_due(state, stamp);
	if (__builtin_expect(stamp >= state->next_pause_edge, 0))
		pass_pause_edges(state, stamp);
	return stamp;
}

/*
 * Apply pauses: drop new blocks, and let a reallocated known block keep its stack. Returns 0 if
 * nothing of the event is left.
 */
static __attribute__((noinline)) bool
take_pause(struct process_state *state, struct ring_consumer *consumer, uint32_t i, uint64_t stamp)
{
	struct consumed_event *event = &consumer->events[i];

	/*
	 * Allocations in the pause were not seen: the thread's next free is not of a temporary
	 * block.
	 */
	if (consumer->heap.n_edges_passed != state->n_edges_passed)
		consumer->heap.last_alloc = 0;
	consumer->heap.n_edges_passed = state->n_edges_passed;
	if (event->id != EVENT_ALLOC)
		return true;
	/*
	 * An agent that saw the pause sends no stack, although the event may be stamped after the
	 * pause ended.
	 */
	if (event->entry == ALLOC_REALLOC && consumer->heap.is_reallocating &&
	    (state->n_edges_passed & 1 || !event->stack_or_site)) {
		event->stack_or_site = consumer->heap.old.site;
		return true;
	}
	if (!(state->n_edges_passed & 1))
		return true;
	if (event->entry == ALLOC_REALLOC)
		torsh_heap_end_unknown(&state->heap, &consumer->heap);
	torsh_heap_forget(&state->heap, stamp, event->address);
	if (state->tasks.has_blocks)
		torsh_tasks_free(&state->tasks, event->address);
	return false;
}

static inline void fold_alloc(struct process_state *state, struct ring_consumer *consumer,
			      const struct consumed_event *event, uint64_t stamp)
{
	torsh_heap_alloc(&state->heap, &consumer->heap,
			 &(struct heap_alloc){
				 .stamp = stamp,
				 .address = event->address,
				 .size = event->size,
				 .usable = event->usable,
				 .site = event->stack_or_site,
				 .is_realloc = event->entry == ALLOC_REALLOC,
			 });
}

/* What an event of the heap changes for tasks. */
static void fold_tasks(struct process_state *state, struct ring_consumer *consumer,
		       const struct consumed_event *event)
{
	const struct sampling *sampling = &state->heap.sampling;
	struct tasks *tasks = &state->tasks;

	switch (event->id) {
	case EVENT_ALLOC:
		torsh_tasks_alloc(tasks, &consumer->task, event->address,
				  sampling->rate
					  ? (uint64_t)torsh_sampling_bytes(sampling, event->size)
					  : event->size);
		break;
	case EVENT_FREE:
		torsh_tasks_free(tasks, event->address);
		break;
	case EVENT_REALLOC_BEGIN:
		torsh_tasks_resize(tasks, &consumer->task, event->address);
		break;
	case EVENT_REALLOC_FAILED:
	case EVENT_REALLOC_UNSAMPLED:
		torsh_tasks_not_resized(tasks, &consumer->task, event->id == EVENT_REALLOC_FAILED);
		break;
	default:
		break;
	}
}

static __attribute__((noinline)) void fold_any(struct process_state *state,
					       struct ring_consumer *consumer, uint32_t i)
{
	const struct consumed_event *event = &consumer->events[i];
	uint64_t stamp = take_stamp(state, event->stamp);

	state->n_folded++;
	if (state->n_edges_passed && !take_pause(state, consumer, i, stamp))
		return;
	if (EVENT_IS_TIMELINE(event->id)) {
		torsh_process_timeline_keep(state, consumer, i, stamp);
		return;
	}
	/* Program events become Unfollowed rows; their texts are in the channel. */
	if (state->columns && event->id != EVENT_PROGRAM)
		keep_event(state, consumer, i, stamp);
	else if (state->columns_failed)
		state->losses[WRITER_LOSS_events_unkept]++;
	if (state->tasks.has_blocks)
		fold_tasks(state, consumer, event);
	switch (event->id) {
	case EVENT_ALLOC:
		fold_alloc(state, consumer, event, stamp);
		break;
	case EVENT_FREE:
		torsh_heap_free(&state->heap, &consumer->heap, stamp, event->address);
		break;
	case EVENT_REALLOC_BEGIN:
		torsh_heap_realloc_begin(&state->heap, &consumer->heap, stamp, event->address);
		break;
	case EVENT_REALLOC_FAILED:
		torsh_heap_realloc_failed(&state->heap, &consumer->heap, stamp);
		break;
	case EVENT_REALLOC_UNSAMPLED:
		torsh_heap_realloc_unsampled(&state->heap, &consumer->heap, stamp);
		break;
	case EVENT_EXEC:
		state->has_executed = !consumer->cold[i].exec.failed;
		state->exec_stamp = stamp;
		state->exec_own_stamp = event->stamp;
		state->exec_thread = consumer->thread;
		break;
	default:
		/* The event's own stamp may be late; folding only moves forward. */
		consumer->cold[i].stamp = stamp;
		fold_cold(state, &consumer->cold[i], event->stack_or_site);
		break;
	}
}

/* Returns true if an allocation or a free at the stamp changes nothing but the heap. */
static inline bool is_plain(const struct process_state *state, uint64_t stamp)
{
	return stamp >= state->last_stamp && stamp < state->next_due_stamp &&
	       stamp < state->next_pause_edge && !state->n_edges_passed && !state->columns &&
	       !state->columns_failed && !state->tasks.has_blocks;
}

/* The common path has few branches and needs few registers; fold_any does the same for all. */
void torsh_process_state_fold(struct process_state *state, struct ring_consumer *consumer,
			      uint32_t i)
{
	const struct consumed_event *event = &consumer->events[i];
	uint64_t stamp = event->stamp;

	if (__builtin_expect(event->id > EVENT_FREE || !is_plain(state, stamp), 0)) {
		fold_any(state, consumer, i);
		return;
	}
	state->last_stamp = stamp;
	state->n_folded++;
	if (event->id == EVENT_ALLOC)
		fold_alloc(state, consumer, event, stamp);
	else
		torsh_heap_free(&state->heap, &consumer->heap, stamp, event->address);
}

_Static_assert(EVENT_ALLOC == 1 && EVENT_FREE == 2, "no other event has a lower number");

bool torsh_process_state_is_executing(const struct process_state *state)
{
	return state->has_executed &&
	       state->threads[state->exec_thread].end_stamp <= state->exec_own_stamp;
}

void torsh_process_state_end_consumer(struct process_state *state, struct ring_consumer *consumer)
{
	struct folded_thread *thread = &state->threads[consumer->thread];

	torsh_heap_realloc_failed(&state->heap, &consumer->heap, state->last_stamp);
	torsh_tasks_end_thread(&state->tasks, &consumer->task);
	torsh_scopes_end(&state->scopes, consumer->heap.number);
	consumer->heap.scope = NULL;
	thread->is_changed = true;
	thread->end_stamp = consumer->codec.stamp;
	thread->allocs = consumer->heap.allocs;
	thread->alloc_bytes = consumer->heap.alloc_bytes;
	thread->frees = consumer->heap.frees;
}
