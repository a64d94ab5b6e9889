/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that grows from step to step: for each stack, the steps in which the blocks were allocated
 * that were live when the latest step began. A leak has survivors from all steps, a cache that
 * warms up from the first steps, a bounded cache from the last ones.
 */
#include <stdbool.h>

#include "tools/base/memory.h"
#include "tools/writer/output/rows/rows_parts.h"

#define PARTS_MAX 64u /* bits of a mask */
#define MARKS_MIN 4u

struct survivors {
	uint64_t parts; /* bit i: blocks were allocated in that part of the steps */
	uint64_t late_blocks, late_bytes;
	/* allocated in the second quarter and in the last quarter of the late steps */
	uint64_t early_blocks, last_blocks;
};

/* The finished steps, from mark to mark. */
struct steps {
	const struct step_marks *marks;
	uint32_t n; /* intervals between marks */
	uint32_t n_parts;
	uint32_t first_late; /* number of the first late interval */
};

static void add_block(struct survivors *of_site, const struct steps *steps,
		      struct sample_weight weight, uint64_t stamp)
{
	uint32_t interval = torsh_step_marks_find(steps->marks, stamp);

	if (interval >= steps->n)
		return;
	of_site->parts |= UINT64_C(1) << ((uint64_t)interval * steps->n_parts / steps->n);
	if (interval < steps->first_late)
		return;
	of_site->late_blocks += (uint64_t)weight.blocks;
	of_site->late_bytes += (uint64_t)weight.bytes;
	if (interval < (steps->n + 1) / 2)
		of_site->early_blocks += (uint64_t)weight.blocks;
	if (interval >= (3 * (uint64_t)steps->n + 3) / 4)
		of_site->last_blocks += (uint64_t)weight.blocks;
}

struct growth_sum {
	struct steps steps;
	bool has_survivors; /* there were enough steps */
	struct survivors of_sites[];
};

static uint32_t count_used(const struct growth_sum *sum, uint32_t first, uint32_t n_sites)
{
	uint32_t n_used = 0;

	for (uint32_t i = first; i < n_sites && n_used < ROWS_TOTALS; i++)
		n_used += sum->of_sites[i].late_blocks != 0;
	return n_used;
}

struct growth_sum *torsh_rows_sum_growth(const struct target *target)
{
	const struct heap *heap = &target->state.heap;
	const struct step_marks *marks = &target->state.steps;
	struct live_block block;
	struct growth_sum *sum;
	uint64_t at = 0;

	if (!marks->n)
		return NULL;
	sum = torsh_memory_new(1, sizeof(*sum) + heap->n_sites * sizeof(*sum->of_sites));
	if (marks->n < MARKS_MIN)
		return sum;
	sum->has_survivors = true;
	sum->steps = (struct steps){.marks = marks, .n = marks->n - 1};
	sum->steps.n_parts = sum->steps.n < PARTS_MAX ? sum->steps.n : PARTS_MAX;
	sum->steps.first_late = (sum->steps.n + 3) / 4;
	while (torsh_live_next(&heap->live, &at, &block))
		add_block(&sum->of_sites[block.site], &sum->steps, torsh_heap_weigh(heap, &block),
			  heap->first_stamp + block.stamp);
	for (uint32_t i = 0; i < heap->n_ended; i++)
		add_block(&sum->of_sites[heap->ended[i].site], &sum->steps, heap->ended[i].weight,
			  heap->first_stamp + heap->ended[i].stamp);
	return sum;
}

static void make_columns(Torsh__Growth *row, struct rows_memory *memory,
			 const struct target *target, const struct growth_sum *sum, uint32_t n)
{
	const struct step_marks *marks = &target->state.steps;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, rule, marks->source);
	ROWS_SET(row, n_steps, marks->n_steps);
	if (sum->has_survivors) {
		ROWS_SET(row, part_count, sum->steps.n_parts);
		ROWS_SET(row, late_steps,
			 (uint64_t)(sum->steps.n - sum->steps.first_late) * marks->stride);
	}
	ROWS_COLUMN(memory, row, parts, n);
	ROWS_COLUMN(memory, row, late_blocks, n);
	ROWS_COLUMN(memory, row, late_bytes, n);
	ROWS_COLUMN(memory, row, is_tensor, n);
	ROWS_COLUMN(memory, row, early_blocks, n);
	ROWS_COLUMN(memory, row, last_blocks, n);
}

void torsh_rows_put_growth(Torsh__Growth *row, struct rows_memory *memory,
			   const struct target *target, const struct growth_sum *sum,
			   uint32_t *site)
{
	const struct heap *heap = &target->state.heap;
	uint32_t n = count_used(sum, *site, heap->n_sites), *stacks;

	make_columns(row, memory, target, sum, n);
	/* Rows after the first chunk have their stacks in a separate column. */
	if (*site)
		ROWS_COLUMN(memory, row, further_stack, n);
	else
		ROWS_COLUMN(memory, row, stack, n);
	stacks = *site ? row->further_stack : row->stack;
	for (uint32_t i = 0; i < n; ++*site) {
		const struct survivors *survivors = &sum->of_sites[*site];

		if (!survivors->late_blocks)
			continue;
		stacks[i] = heap->sites[*site].stack;
		row->parts[i] = survivors->parts;
		row->late_blocks[i] = survivors->late_blocks;
		row->late_bytes[i] = survivors->late_bytes;
		row->early_blocks[i] = survivors->early_blocks;
		row->last_blocks[i] = survivors->last_blocks;
		row->is_tensor[i++] = (int)heap->sites[*site].is_of_tensors;
	}
	if (!count_used(sum, *site, heap->n_sites))
		*site = heap->n_sites;
}
