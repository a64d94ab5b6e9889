/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What grows from step to step: of each stack, in which steps the blocks were allocated that were alive when the latest
 * step began. A leak has survivors of all times, a cache that warms up has them of the first steps, a bounded one of the
 * last.
 */
#include "tools/writer/rows_parts.h"

#define PARTS_MAX 64u /* of a mask */
#define MARKS_MIN 4u

struct survivors {
	uint64_t parts; /* bit i: some were allocated in that part of the steps */
	uint64_t late_blocks, late_bytes;
	uint64_t early_blocks, last_blocks; /* of the late ones: those of the second and of the last quarter */
};

/* The steps that are over, from mark to mark. */
struct steps {
	const struct step_marks *marks;
	uint32_t n; /* intervals between marks */
	uint32_t n_parts;
	uint32_t first_late; /* interval */
};

static void add_block(struct survivors *of_site, const struct steps *steps, uint64_t size, uint64_t stamp)
{
	uint32_t interval = torsh_step_marks_find(steps->marks, stamp);

	if (interval >= steps->n)
		return;
	of_site->parts |= UINT64_C(1) << ((uint64_t)interval * steps->n_parts / steps->n);
	if (interval < steps->first_late)
		return;
	of_site->late_blocks++;
	of_site->late_bytes += size;
	if (interval < (steps->n + 1) / 2)
		of_site->early_blocks++;
	if (interval >= (3 * (uint64_t)steps->n + 3) / 4)
		of_site->last_blocks++;
}

static uint32_t count_used(const struct survivors *survivors, uint32_t n)
{
	uint32_t n_used = 0;

	for (uint32_t i = 0; i < n; i++)
		n_used += survivors[i].late_blocks != 0;
	return n_used;
}

static void put_survivors(Torsh__Growth *row, const struct heap *heap, const struct survivors *survivors)
{
	uint32_t i = 0;

	for (uint32_t site = 0; site < heap->n_sites; site++) {
		if (!survivors[site].late_blocks)
			continue;
		row->stack[i] = heap->sites[site].stack;
		row->parts[i] = survivors[site].parts;
		row->late_blocks[i] = survivors[site].late_blocks;
		row->late_bytes[i] = survivors[site].late_bytes;
		row->early_blocks[i] = survivors[site].early_blocks;
		row->last_blocks[i] = survivors[site].last_blocks;
		row->is_tensor[i++] = (int)heap->sites[site].is_of_tensors;
	}
}

int torsh_rows_put_growth(Torsh__Growth *row, struct rows_memory *memory, const struct target *target)
{
	const struct heap *heap = &target->tally.heap;
	const struct step_marks *marks = &target->tally.steps;
	struct steps steps = {.marks = marks, .n = marks->n ? marks->n - 1 : 0};
	struct survivors *survivors;
	const struct live_block *block;
	uint64_t at = 0;
	uint32_t n;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, rule, marks->told_by);
	ROWS_SET(row, n_steps, marks->n_steps);
	if (marks->n < MARKS_MIN)
		return marks->n != 0;
	steps.n_parts = steps.n < PARTS_MAX ? steps.n : PARTS_MAX;
	steps.first_late = (steps.n + 3) / 4;
	ROWS_SET(row, part_count, steps.n_parts);
	ROWS_SET(row, late_steps, (uint64_t)(steps.n - steps.first_late) * marks->stride);
	survivors = torsh_rows_memory(memory, heap->n_sites, sizeof(*survivors));
	while ((block = torsh_live_next(&heap->live, &at)))
		add_block(&survivors[block->site], &steps, block->size, heap->first_stamp + block->stamp);
	for (uint32_t i = 0; i < heap->n_ended; i++)
		add_block(&survivors[heap->ended[i].site], &steps, heap->ended[i].size,
			  heap->first_stamp + heap->ended[i].stamp);
	n = count_used(survivors, heap->n_sites);
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, parts, n);
	ROWS_COLUMN(memory, row, late_blocks, n);
	ROWS_COLUMN(memory, row, late_bytes, n);
	ROWS_COLUMN(memory, row, is_tensor, n);
	ROWS_COLUMN(memory, row, early_blocks, n);
	ROWS_COLUMN(memory, row, last_blocks, n);
	put_survivors(row, heap, survivors);
	return 1;
}
