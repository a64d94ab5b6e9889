/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/rows/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/process_timeline.h"
#include "tools/writer/output/flight.h"
#include "tools/writer/output/rows/rows_parts.h"

#ifndef TORSH_VERSION
#define TORSH_VERSION "unknown"
#endif

void *torsh_rows_keep(struct rows_memory *memory, void *block)
{
	memory->blocks = torsh_array_reserve(memory->blocks, memory->n_blocks, &memory->capacity,
					     sizeof(*memory->blocks));
	memory->blocks[memory->n_blocks++] = block;
	return block;
}

void *torsh_rows_memory(struct rows_memory *memory, size_t n, size_t n_bytes)
{
	return torsh_rows_keep(memory, torsh_memory_new(n, n_bytes));
}

void torsh_rows_free(struct rows_memory *memory)
{
	while (memory->n_blocks)
		free(memory->blocks[--memory->n_blocks]);
	free(memory->blocks);
	*memory = (struct rows_memory){0};
}

void torsh_rows_session(struct recording_file *file, const struct rows_session *session)
{
	Torsh__Session row = TORSH__SESSION__INIT;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	char host[256] = "", version[] = TORSH_VERSION;
	char *recording = session->recording ? torsh_memory_text(session->recording) : NULL;
	char *record = session->record ? torsh_memory_text(session->record) : NULL;

	gethostname(host, sizeof(host) - 1);
	ROWS_SET(&row, format, RECORDING_FORMAT);
	ROWS_SET(&row, start_realtime_ns, session->start_realtime_ns);
	if (session->kernel_clock) {
		ROWS_SET(&row, kernel_clock, session->kernel_clock);
		ROWS_SET(&row, start_monotonic_ns, session->start_monotonic_ns);
	}
	ROWS_SET(&row, writer_pid, (uint32_t)getpid());
	row.agent_version = version;
	row.host = host;
	row.record = record;
	if (session->without_flops)
		ROWS_SET(&row, without_flops, 1);
	if (session->ends_with_process_1)
		ROWS_SET(&row, ends_with_process_1, 1);
	row.n_paused_ns = session->n_paused;
	row.paused_ns = session->paused_ns;
	row.n_resumed_ns = session->n_resumed;
	row.resumed_ns = session->resumed_ns;
	row.recording = recording;
	if (recording)
		ROWS_SET(&row, taken_ns, session->taken_ns);
	chunk.session = &row;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
	free(recording);
	free(record);
}

void torsh_rows_process(struct recording_file *file, const struct target *target)
{
	Torsh__Process row = TORSH__PROCESS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};

	torsh_rows_put_process(&row, &memory, target);
	chunk.n_process = 1;
	chunk.process = &rows;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
	torsh_rows_free(&memory);
}

void torsh_rows_state_destroy(struct rows_state *state)
{
	if (state)
		free(state->extents);
	free(state);
}

static void put_cost(Torsh__Writer *row, const struct cost *cost)
{
	if (cost->resident_bytes)
		ROWS_SET(row, resident_bytes, cost->resident_bytes);
	ROWS_SET(row, live_blocks, cost->live_blocks);
	ROWS_SET(row, live_bytes, cost->live_bytes);
	ROWS_SET(row, stacks, cost->stacks);
}

void torsh_rows_checkpoint(struct recording_file *file, uint64_t at_ns, const struct cost *cost,
			   struct extent *extent)
{
	Torsh__Writer writer = TORSH__WRITER__INIT;
	Torsh__Checkpoint row = TORSH__CHECKPOINT__INIT;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct extent former = *extent;

	ROWS_SET(&row, at_ns, at_ns);
	chunk.checkpoint = &row;
	put_cost(&writer, cost);
	chunk.writer = &writer;
	if (torsh_recording_put(file, &chunk, RECORDING_CHECKPOINT, extent))
		*extent = former;
	else
		torsh_recording_free_extent(file, former);
	torsh_recording_settle(file);
}

static uint64_t bytes_of(const struct extent *extents, uint32_t n)
{
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		n_bytes += extents[i].n_bytes;
	return n_bytes;
}

/*
 * After a failed checkpoint, it is unknown which rows changed since the last complete one: mark
 * all.
 */
static void mark_all_changed(struct process_state *state)
{
	struct heap *heap = &state->heap;

	for (uint32_t i = 0; i < heap->n_sites; i++)
		heap->sites[i].is_changed |= torsh_heap_totals(heap, i).allocs != 0;
	for (uint32_t i = 0; i < heap->moments.n; i++)
		heap->moments.items[i].is_changed = true;
	for (uint32_t i = 0; i < WINDOW_PEAKS_SLOTS; i++)
		heap->window_peaks.kept[i].is_changed = heap->window_peaks.kept[i].number != 0;
	for (uint32_t i = 0; i < state->n_threads; i++)
		state->threads[i].is_changed = true;
}

static void mark_all_written(struct process_state *state)
{
	for (uint32_t i = 0; i < state->heap.n_sites; i++)
		state->heap.sites[i].is_changed = false;
	for (uint32_t i = 0; i < state->heap.moments.n; i++)
		state->heap.moments.items[i].is_changed = false;
	for (uint32_t i = 0; i < WINDOW_PEAKS_SLOTS; i++)
		state->heap.window_peaks.kept[i].is_changed = false;
	for (uint32_t i = 0; i < state->n_threads; i++)
		state->threads[i].is_changed = false;
}

static void append_totals(struct recording_file *file, struct target *target,
			  enum recording_priority priority)
{
	torsh_window_peaks_keep_devices(&target->state.heap);
	if (target->rows->has_missed)
		mark_all_changed(&target->state);
	target->rows->has_missed = false;
	torsh_rows_append_totals(file, target, priority);
}

/*
 * Checkpoints contain only changes until these take as much space as all rows did: then all rows
 * are written, and the replaced extents become free. So the file grows with the recorded state, not
 * with time.
 */
static void append_replacing(struct recording_file *file, struct target *target,
			     enum recording_priority priority)
{
	struct rows_state *state = target->rows;
	uint32_t n_former = state->n_extents, n_base = state->n_base;
	bool is_base = priority == RECORDING_LAST ||
		       bytes_of(state->extents + n_base, n_former - n_base) >=
			       bytes_of(state->extents, n_base);

	if (is_base && n_former)
		mark_all_changed(&target->state);
	append_totals(file, target, priority);
	if (!is_base || state->has_missed)
		return;
	for (uint32_t i = 0; i < n_former; i++)
		torsh_recording_free_extent(file, state->extents[i]);
	state->n_base = state->n_extents -= n_former;
	for (uint32_t i = 0; i < state->n_extents; i++)
		state->extents[i] = state->extents[n_former + i];
}

static void append_tables(struct recording_file *file, struct target *target,
			  enum recording_priority priority)
{
	struct program_tables *tables = target->state.tables;

	torsh_rows_append_tables(file, tables, tables->owner, &tables->written, priority);
}

void torsh_rows_target(struct recording_file *file, struct target *target,
		       enum recording_priority priority)
{
	if (!target->rows)
		target->rows = torsh_memory_new(1, sizeof(*target->rows));
	append_tables(file, target, priority);
	torsh_rows_append_placements(file, target, priority);
	append_replacing(file, target, priority);
	torsh_rows_append_verdicts(file, target, priority);
	torsh_rows_append_residency(file, target, priority, false);
	torsh_rows_append_census(file, target, priority, false);
	torsh_rows_append_waits(file, target, priority, false);
	torsh_rows_append_library_calls(file, target, priority, false);
	torsh_rows_append_tasks(file, target, priority, false);
	mark_all_written(&target->state);
}

/* Write all totals, as of a target of which only that much is in the file. */
static int append_target_to(struct recording_file *file, struct target *target,
			    struct rows_state state)
{
	struct rows_state *written = target->rows;

	/* All totals: the written ones may be replaced while a client reads them. */
	state.has_missed = true;
	state.extents = NULL;
	state.n_extents = state.extent_capacity = 0;
	target->rows = &state;
	torsh_rows_append_placements(file, target, RECORDING_LAST);
	append_totals(file, target, RECORDING_LAST);
	torsh_rows_append_verdicts(file, target, RECORDING_LAST);
	torsh_rows_append_residency(file, target, RECORDING_LAST, true);
	torsh_rows_append_census(file, target, RECORDING_LAST, true);
	torsh_rows_append_waits(file, target, RECORDING_LAST, true);
	torsh_rows_append_library_calls(file, target, RECORDING_LAST, true);
	torsh_rows_append_tasks(file, target, RECORDING_LAST, true);
	target->rows = written;
	return state.has_missed ? -EIO : 0;
}

/* Likewise for tables, as rows of that process. */
static int append_tables_to(struct recording_file *file, const struct program_tables *tables,
			    uint32_t process, struct tables_written written)
{
	torsh_rows_append_tables(file, tables, process, &written, RECORDING_LAST);
	return written.n_stacks < tables->stacks.n_rows ? -EIO : 0;
}

static bool is_first_of_program(struct target *const *targets, uint32_t i)
{
	uint32_t k = 0;

	while (targets[k]->state.tables != targets[i]->state.tables)
		k++;
	return k == i;
}

int torsh_rows_snapshot(struct recording_file *file, struct target *const *targets, uint32_t n)
{
	int result = 0;

	for (uint32_t i = 0; i < n && !result; i++) {
		const struct rows_state *rows = targets[i]->rows;
		const struct program_tables *tables = targets[i]->state.tables;

		if (is_first_of_program(targets, i))
			result = append_tables_to(file, tables, tables->owner, tables->written);
		if (!result)
			result = append_target_to(file, targets[i],
						  rows ? *rows : (struct rows_state){0});
	}
	return result;
}

int torsh_rows_target_alone(struct recording_file *file, struct target *target)
{
	int result = append_tables_to(file, target->state.tables, target->number,
				      (struct tables_written){0});

	return result ? result
		      : append_target_to(file, target, (struct rows_state){.is_alone = true});
}

uint32_t torsh_rows_events(struct recording_file *file, struct target *target, uint32_t n_least)
{
	Torsh__Events row = TORSH__EVENTS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct columns_writer *columns = target->state.columns;
	uint32_t n_events;
	uint64_t first_ns;
	int result;

	if (!columns || torsh_columns_count(columns) < n_least || !torsh_columns_count(columns))
		return 0;
	result = torsh_columns_take(columns, &first_ns, &n_events, &row.columns.data,
				    &row.columns.len);
	if (result)
		return n_events;
	row.has_columns = true;
	ROWS_SET(&row, process, target->number);
	ROWS_SET(&row, first_ns, first_ns);
	ROWS_SET(&row, n_events, n_events);
	chunk.n_events = 1;
	chunk.events = &rows;
	result = torsh_recording_append(file, &chunk, RECORDING_EVENTS);
	free(row.columns.data);
	return result ? n_events : 0;
}

/* Write what the writer has of the target's timeline. Returns as torsh_rows_timeline. */
static uint32_t put_timeline(struct recording_file *file, struct flight *flight,
			     struct target *target, struct timeline_writer *timeline)
{
	struct process_state *state = &target->state;
	Torsh__Timeline row = TORSH__TIMELINE__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct flight_chunk about = {.process = target->number,
				     .first_ns = state->timeline_first_ns,
				     .last_ns = state->timeline_last_ns,
				     .n_steps = state->steps.n_steps,
				     .passed = &state->passed};
	uint32_t n_events;
	int result = torsh_timeline_take(timeline, &n_events, &row.columns.data, &row.columns.len);

	if (result)
		return n_events;
	row.has_columns = true;
	ROWS_SET(&row, process, target->number);
	ROWS_SET(&row, n_events, n_events);
	chunk.n_timeline = 1;
	chunk.timeline = &rows;
	about.n_events = n_events;
	if (flight) {
		ROWS_SET(&row, events_before, state->timeline_events);
		ROWS_SET(&row, steps_before, state->timeline_steps);
	}
	result = flight ? torsh_flight_put(flight, file, &chunk, &about)
			: torsh_recording_append(file, &chunk, RECORDING_EVENTS);
	free(row.columns.data);
	return result ? n_events : 0;
}

uint32_t torsh_rows_timeline(struct recording_file *file, struct flight *flight,
			     struct target *target, uint32_t n_least)
{
	struct timeline_writer *timeline = target->state.timeline,
			       *definitions = target->state.definitions;
	uint32_t n_lost = 0, n_events;

	if (definitions && torsh_timeline_count(definitions) >= n_least)
		n_lost = put_timeline(file, NULL, target, definitions);
	if (!timeline || torsh_timeline_count(timeline) + 1 < n_least)
		return n_lost;
	torsh_process_timeline_mark_heap(&target->state);
	if (torsh_timeline_count(timeline) < n_least || !torsh_timeline_count(timeline))
		return n_lost;
	n_events = torsh_timeline_count(timeline);
	n_lost += put_timeline(file, definitions ? flight : NULL, target, timeline);
	target->state.timeline_events += n_events;
	target->state.timeline_steps = target->state.steps.n_steps;
	return n_lost;
}

void torsh_rows_end(struct recording_file *file, const struct rows_end *end)
{
	Torsh__Writer writer = TORSH__WRITER__INIT;
	Torsh__End row = TORSH__END__INIT;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	ROWS_SET(&row, complete, end->is_complete);
	ROWS_SET(&row, at_ns, end->at_ns);
	row.n_reasons = end->n_reasons;
	row.reasons = end->reasons;
	chunk.end = &row;
	if (end->cost) {
		put_cost(&writer, end->cost);
		chunk.writer = &writer;
	}
	torsh_recording_append(file, &chunk, RECORDING_LAST);
}
