/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads chunks with memory by stack and over time. The functions are alike, but each checks and
 * copies the columns of a different message type.
 */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

bool torsh_load_can_walk(struct recording *recording, const struct recorded_process *process,
			 uint32_t stack)
{
	if (stack < process->tables->n_stacks)
		recording->n_frames += process->tables->stacks[stack].depth;
	if (recording->n_frames <= FRAMES_ANYWAY + FRAMES_A_BYTE * recording->size_bytes)
		return true;
	recording->n_bad_rows++;
	return false;
}

/* Returns true if tables may have rows of that stack. Counts a bad row if not. */
static bool can_have_row(struct recording *recording, uint32_t stack)
{
	recording->n_bad_rows += stack >= STACKS_MAX;
	return stack < STACKS_MAX;
}

void *torsh_load_row(struct recording *recording, const struct recorded_process *process,
		     struct recorded_rows *rows, uint32_t stack, size_t item_bytes)
{
	void *known;
	char *row;

	if (!can_have_row(recording, stack))
		return NULL;
	known = torsh_recording_row(rows, stack, item_bytes);
	if (known)
		return known;
	if (!torsh_load_can_walk(recording, process, stack))
		return NULL;
	rows->items = torsh_array_reserve(rows->items, rows->n, &rows->n_room, item_bytes);
	row = (char *)rows->items + rows->n * item_bytes;
	*(uint32_t *)row = stack;
	torsh_row_index_add(&rows->row_of, stack, (uint32_t)rows->n++);
	return row;
}

void torsh_load_clear_rows(struct recorded_rows *rows)
{
	torsh_row_index_destroy(&rows->row_of);
	free(rows->items);
	*rows = (struct recorded_rows){0};
}

/* For a column that may be missing. */
static uint32_t number_at(const uint32_t *column, size_t n_column, size_t i)
{
	return i < n_column ? column[i] : 0;
}

/* Columns of variances that may be missing. */
struct variances {
	const double *blocks, *bytes;
	size_t n_blocks, n_bytes;
};

#define VARIANCE(row, name)                                                \
	((struct variances){.blocks = (row)->name##_blocks_variance,       \
			    .bytes = (row)->name##_bytes_variance,         \
			    .n_blocks = (row)->n_##name##_blocks_variance, \
			    .n_bytes = (row)->n_##name##_bytes_variance})

/* A variance is a finite number of 0 or more. */
static double double_at(const double *column, size_t n_column, size_t i)
{
	return i < n_column && column[i] > 0 && column[i] < 1e300 ? column[i] : 0;
}

static struct estimate_variance variance_at(struct variances columns, size_t i)
{
	return (struct estimate_variance){
		.blocks = double_at(columns.blocks, columns.n_blocks, i),
		.bytes = double_at(columns.bytes, columns.n_bytes, i),
	};
}

void torsh_load_totals(struct recording *recording, const Torsh__StackTotals *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_allocs != n || row->n_alloc_bytes != n || row->n_temporary != n ||
	    row->n_temporary_bytes != n || row->n_seen != n || row->n_base_blocks != n ||
	    row->n_base_bytes != n || row->n_delta_blocks != n || row->n_delta_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct recorded_total total = {
			.stack = row->stack[i],
			.seen = row->seen[i],
			.allocs = row->allocs[i],
			.alloc_bytes = row->alloc_bytes[i],
			.temporary = row->temporary[i],
			.temporary_bytes = row->temporary_bytes[i],
			.base_blocks = row->base_blocks[i],
			.base_bytes = row->base_bytes[i],
			.delta_blocks = row->delta_blocks[i],
			.delta_bytes = row->delta_bytes[i],
			.alloc_variance = variance_at(VARIANCE(row, alloc), i),
			.base_variance = variance_at(VARIANCE(row, base), i),
			.live_variance = variance_at(VARIANCE(row, live), i),
			.operator= number_at(row->in_operator, row->n_in_operator, i),
			.module = number_at(row->in_module, row->n_in_module, i),
			.first_step = number_at(row->step_of_first, row->n_step_of_first, i),
			.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			.base_first_step =
				number_at(row->base_step_of_first, row->n_base_step_of_first, i),
			.base_last_step =
				number_at(row->base_step_of_last, row->n_base_step_of_last, i),
		};

		if (!can_have_row(recording, total.stack) ||
		    (!torsh_totals_has(&process->totals, total.stack) &&
		     !torsh_load_can_walk(recording, process, total.stack)))
			continue;
		recording->n_bad_rows += !torsh_totals_put(&process->totals, &total);
	}
}

/* Returns whether all values of a column are 0, which is one byte for each. */
static bool is_zero(const struct packed_column *column)
{
	return !column->n || (!column->at[0] && !memcmp(column->at, column->at + 1, column->n - 1));
}

/*
 * Get the columns of StackTotals in the order of torsh_totals_pack, and as bits those that have
 * values. Returns false if columns of the n rows are missing.
 */
static bool total_columns(const struct packed_message *row, size_t n,
			  struct packed_column columns[TOTAL_NUMBERS], uint32_t *present)
{
	static const uint8_t fields[TOTAL_NUMBERS] = {3, 4,  8,	 9,  10, 11, 7, 5,
						      6, 13, 14, 15, 16, 17, 18};
	size_t n_needed = 9;

	*present = 0;
	for (size_t i = 0; i < TOTAL_NUMBERS; i++) {
		columns[i] = row->columns[fields[i]];
		if (i < n_needed && columns[i].n != n)
			return false;
		*present |= is_zero(&columns[i]) ? 0 : UINT32_C(1) << i;
	}
	return true;
}

/* Get the stack that is encoded as its distance from the one before, or as it is. */
static uint32_t next_stack(struct packed_column *column, uint32_t before, bool is_step)
{
	uint64_t value = torsh_packed_varint(&column->at);

	return is_step ? before + (uint32_t)torsh_packed_signed((uint32_t)value) : (uint32_t)value;
}

/* As torsh_load_totals; torsh_delta_decode has the meaning of stack_step. */
void torsh_load_packed_totals(struct recording *recording, const struct packed_message *row)
{
	enum { PROCESS = 1, STACK = 2, STACK_STEP = 12 };
	struct recorded_process *process =
		torsh_load_process_of(recording, (uint32_t)row->numbers[PROCESS]);
	bool is_step = row->columns[STACK_STEP].n && !row->columns[STACK].n;
	struct packed_column stacks = row->columns[is_step ? STACK_STEP : STACK];
	struct packed_column columns[TOTAL_NUMBERS];
	struct packed_total total;
	uint32_t present;

	if (!process)
		return;
	if (!total_columns(row, stacks.n, columns, &present)) {
		recording->n_bad_rows++;
		return;
	}
	total.stack = 0;
	for (size_t i = 0; i < stacks.n; i++) {
		struct recorded_totals *totals = &process->totals;

		total.stack = next_stack(&stacks, total.stack, is_step);
		torsh_totals_pack(&total, columns, present);
		if (!can_have_row(recording, total.stack))
			continue;
		total.row = torsh_row_index_find(&totals->row_of, total.stack);
		if (total.row == ROW_INDEX_NONE &&
		    !torsh_load_can_walk(recording, process, total.stack))
			continue;
		recording->n_bad_rows += !torsh_totals_put_packed(totals, &total);
	}
}

static void load_lifetimes(struct recording *recording, struct recorded_heap *heap,
			   const Torsh__Heap *row)
{
	size_t n = row->n_lifetime_blocks;

	if (row->n_lifetime_from_ns != n || row->n_lifetime_bytes != n ||
	    n > PROFILE_SIZE_CLASSES) {
		recording->n_bad_rows++;
		return;
	}
	heap->n_lifetimes = n;
	for (size_t i = 0; i < n; i++)
		heap->lifetimes[i] = (struct recorded_lifetime){.from_ns = row->lifetime_from_ns[i],
								.blocks = row->lifetime_blocks[i],
								.bytes = row->lifetime_bytes[i]};
}

void torsh_load_heap(struct recording *recording, const Torsh__Heap *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_heap *heap;

	if (!process)
		return;
	heap = &process->heap;
	*heap = (struct recorded_heap){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_blocks = row->peak_blocks,
		.peak_ns = row->peak_ns,
		.current_bytes = row->current_bytes,
		.current_blocks = row->current_blocks,
		.current_usable_bytes = row->current_usable_bytes,
		.allocs = row->allocs,
		.frees = row->frees,
		.alloc_bytes = row->alloc_bytes,
		.reallocs = row->reallocs,
		.temporary = row->temporary,
		.unknown_frees = row->unknown_frees,
		.pause_frees = row->pause_frees,
		.implicit_frees = row->implicit_frees,
		.late_events = row->late_events,
		.has_inherited_blocks = row->has_inherited_blocks,
		.has_inherited_bytes = row->has_inherited_bytes,
		.inherited_blocks = row->inherited_blocks,
		.inherited_bytes = row->inherited_bytes,
		.inherited_frees = row->inherited_frees,
		.sampled_every = row->sampled_every,
	};
	for (size_t i = 0; i < row->n_size_bytes && i < PROFILE_SIZE_CLASSES; i++)
		heap->size_bytes[i] = row->size_bytes[i];
	for (size_t i = 0; i < row->n_size_blocks && i < PROFILE_SIZE_CLASSES; i++)
		heap->size_blocks[i] = row->size_blocks[i];
	load_lifetimes(recording, heap, row);
}

static uint64_t column_at(const uint64_t *column, size_t n_column, size_t i)
{
	return i < n_column ? column[i] : 0;
}

/* Returns false if the groups don't belong to the rows. */
static bool can_have_groups(const Torsh__Live *row)
{
	size_t n = row->n_group_after_ns, n_counted = 0;

	for (size_t i = 0; i < row->n_group_count; i++) {
		if (row->group_count[i] > n - n_counted)
			return false;
		n_counted += row->group_count[i];
	}
	return n_counted == n && row->n_group_length_ns == n && row->n_group_blocks == n &&
	       row->n_group_bytes == n && (!n || row->n_group_count == row->n_stack);
}

/* Add the n groups of a row, from number at on. */
static void add_groups(struct recorded_process *process, struct recorded_live *live,
		       const Torsh__Live *row, size_t n, size_t at)
{
	uint64_t end_ns = live->first_ns;

	live->group = process->n_live_groups;
	live->n_groups = n;
	for (; n; n--, at++) {
		struct recorded_live_group group = {
			.first_ns = end_ns + row->group_after_ns[at],
			.blocks = row->group_blocks[at],
			.bytes = row->group_bytes[at],
		};

		end_ns = group.last_ns = group.first_ns + row->group_length_ns[at];
		process->live_groups = torsh_array_reserve(
			process->live_groups, process->n_live_groups, &process->live_groups_room,
			sizeof(*process->live_groups));
		process->live_groups[process->n_live_groups++] = group;
	}
}

static void begin_live(struct recorded_process *process, const Torsh__Live *row)
{
	/* A large table comes in several messages with the same time. */
	if (!process->has_live || row->at_ns != process->live_ns) {
		torsh_load_clear_rows(&process->live);
		process->n_live_groups = 0;
	}
	process->has_live = true;
	process->live_ns = row->at_ns;
	process->usable_is_known = row->usable_is_known;
	process->has_exact_times = row->times_are_exact;
}

void torsh_load_live(struct recording *recording, const Torsh__Live *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_stack, at_group = 0, n_groups;

	if (!process)
		return;
	if (row->n_blocks != n || row->n_bytes != n || !can_have_groups(row)) {
		recording->n_bad_rows++;
		return;
	}
	begin_live(process, row);
	for (size_t i = 0; i < n; i++, at_group += n_groups) {
		struct recorded_live *live =
			torsh_load_row(recording, process, &process->live, row->stack[i],
				       sizeof(struct recorded_live));

		n_groups = number_at(row->group_count, row->n_group_count, i);
		if (!live)
			continue;
		*live = (struct recorded_live){
			.stack = row->stack[i],
			.blocks = row->blocks[i],
			.bytes = row->bytes[i],
			.usable_bytes = column_at(row->usable_bytes, row->n_usable_bytes, i),
			.first_ns = column_at(row->first_ns, row->n_first_ns, i),
			.last_ns = column_at(row->last_ns, row->n_last_ns, i),
			.first_step = number_at(row->step_of_first, row->n_step_of_first, i),
			.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			.inherited_blocks =
				column_at(row->inherited_blocks, row->n_inherited_blocks, i),
			.inherited_bytes =
				column_at(row->inherited_bytes, row->n_inherited_bytes, i),
			.variance =
				variance_at((struct variances){.blocks = row->blocks_variance,
							       .bytes = row->bytes_variance,
							       .n_blocks = row->n_blocks_variance,
							       .n_bytes = row->n_bytes_variance},
					    i),
		};
		if (n_groups)
			add_groups(process, live, row, n_groups, at_group);
	}
}

static void begin_growth(struct recorded_process *process, const Torsh__Growth *row)
{
	torsh_load_clear_rows(&process->survivors);
	process->steps = (struct profile_steps){
		.rule = row->rule,
		.n_parts = row->part_count,
		.n_steps = row->n_steps,
		.late_steps = row->late_steps,
	};
}

void torsh_load_growth(struct recording *recording, const Torsh__Growth *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	bool is_further = row->n_further_stack != 0;
	const uint32_t *stacks = is_further ? row->further_stack : row->stack;
	size_t n = is_further ? row->n_further_stack : row->n_stack;

	if (!process)
		return;
	if (row->n_parts != n || row->n_late_blocks != n || row->n_late_bytes != n ||
	    row->n_is_tensor != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!is_further)
		begin_growth(process, row);
	for (size_t i = 0; i < n; i++) {
		struct recorded_survivors *survivors =
			torsh_load_row(recording, process, &process->survivors, stacks[i],
				       sizeof(struct recorded_survivors));

		if (survivors)
			*survivors = (struct recorded_survivors){
				.stack = stacks[i],
				.is_tensor = row->is_tensor[i],
				.parts = row->parts[i],
				.late_blocks = row->late_blocks[i],
				.late_bytes = row->late_bytes[i],
				.early_blocks =
					column_at(row->early_blocks, row->n_early_blocks, i),
				.last_blocks = column_at(row->last_blocks, row->n_last_blocks, i),
			};
	}
}

static uint32_t column32_at(const uint32_t *column, size_t n, size_t i)
{
	return i < n ? column[i] : 0;
}

/* The list only grows: the longest one has all paths. */
static void load_paths(struct recorded_process *process, const Torsh__Mappings *row)
{
	size_t n = row->n_paths;

	if (n <= process->n_mapped_paths)
		return;
	process->mapped_paths = torsh_need(realloc(process->mapped_paths, n * sizeof(char *)));
	while (process->n_mapped_paths < n) {
		process->mapped_paths[process->n_mapped_paths] =
			torsh_need(strdup(row->paths[process->n_mapped_paths]));
		process->n_mapped_paths++;
	}
}

void torsh_load_mappings(struct recording *recording, const Torsh__Mappings *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	process->vm = (struct recorded_vm){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_ns = row->peak_ns,
		.current_bytes = row->current_bytes,
		.maps = row->maps,
		.unmaps = row->unmaps,
		.advised_bytes = row->advised_bytes,
	};
	if (row->n_seen != n || row->n_base_pieces != n || row->n_base_bytes != n ||
	    row->n_delta_pieces != n || row->n_delta_bytes != n || row->n_total_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct recorded_mapping *mapping =
			torsh_load_row(recording, process, &process->mappings, row->stack[i],
				       sizeof(struct recorded_mapping));

		if (!mapping)
			continue;
		*mapping = (struct recorded_mapping){
			.stack = row->stack[i],
			.seen = row->seen[i],
			.base_pieces = row->base_pieces[i],
			.base_bytes = row->base_bytes[i],
			.delta_pieces = row->delta_pieces[i],
			.delta_bytes = row->delta_bytes[i],
			.total_bytes = row->total_bytes[i],
			.kinds = column32_at(row->kinds, row->n_kinds, i),
			.path = column32_at(row->path, row->n_path, i),
		};
	}
	load_paths(process, row);
}

void torsh_load_series(struct recording *recording, const Torsh__Series *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_at_ns;

	if (!process)
		return;
	if (row->n_heap_bytes != n || row->n_mapped_bytes != n || row->n_rss_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	/* Each message is the whole series. */
	process->n_series = 0;
	for (size_t i = 0; i < n; i++) {
		process->series =
			torsh_array_reserve(process->series, process->n_series,
					    &process->series_room, sizeof(*process->series));
		process->series[process->n_series++] = (struct recorded_sample){
			.at_ns = row->at_ns[i],
			.heap_bytes = row->heap_bytes[i],
			.mapped_bytes = row->mapped_bytes[i],
			.rss_bytes = row->rss_bytes[i],
		};
	}
}

/* Replaces the shares of an earlier peak. */
static void load_joint_sum(struct recording *recording, const Torsh__Joint *row)
{
	struct recorded_session *joint = &recording->joint;

	if (joint->is_there && joint->peak_number == row->peak_number)
		return;
	for (size_t i = 0; i < recording->n_processes; i++)
		torsh_load_clear_rows(&recording->processes[i]->session_usages);
	*joint = (struct recorded_session){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_blocks = row->peak_blocks,
		.peak_ns = row->peak_ns,
	};
}

void torsh_load_joint(struct recording *recording, const Torsh__Joint *row)
{
	size_t n = row->n_stack;
	struct recorded_process *process;

	load_joint_sum(recording, row);
	recording->joint.late_changes = row->late_changes;
	process = row->has_process ? torsh_load_process_of(recording, row->process) : NULL;
	if (!process)
		return;
	if (row->n_blocks != n || row->n_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct recorded_session_usage *share =
			torsh_load_row(recording, process, &process->session_usages, row->stack[i],
				       sizeof(struct recorded_session_usage));

		if (share)
			*share = (struct recorded_session_usage){
				.stack = row->stack[i],
				.blocks = row->blocks[i],
				.bytes = row->bytes[i],
				.first_step =
					number_at(row->step_of_first, row->n_step_of_first, i),
				.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			};
	}
}
