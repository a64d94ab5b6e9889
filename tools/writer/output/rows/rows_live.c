/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks of a heap by site: their sums, when the first and the last of them were
 * allocated, and groups of them in between, by which a window contains some blocks of a site.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/memory.h"
#include "tools/writer/output/rows/rows_parts.h"

/* Blocks of a site; all times are stamps since the heap's first. */
struct live_group {
	uint64_t first, last;
	uint64_t blocks, bytes;
};

struct live_sum {
	uint64_t blocks, bytes, usable_bytes;
	uint64_t first, last;
};

/* Which groups a site has. */
struct live_grouping {
	/*
	 * its groups begin there: one for each block if there are n_groups_max of them, else one
	 * for each equal part of the time from first to last
	 */
	uint32_t group, n_groups_max;
	uint32_t n_groups; /* so far */
};

/* Most sites of a heap have no live block, so only the others have a sum. */
struct live_sums {
	const struct heap *heap;
	uint32_t *numbers; /* by site: of its item */
	struct live_sum *items; /* [0]: of the sites without live blocks, and zero */
	struct sample_variance *variances; /* of the items; NULL: blocks are not sampled */
	struct live_grouping *groupings; /* of the items; NULL: there are no groups */
	uint32_t n;
	struct live_group *groups;
};

static struct live_sum *sum_of(const struct live_sums *sums, uint32_t site)
{
	return &sums->items[sums->numbers[site]];
}

/* None without groups. */
static struct live_grouping grouping_of(const struct live_sums *sums, uint32_t site)
{
	return sums->groupings ? sums->groupings[sums->numbers[site]] : (struct live_grouping){0};
}

static void number_site(struct live_sums *sums, uint32_t site)
{
	if (!sums->numbers[site])
		sums->numbers[site] = sums->n++;
}

static void number_block(struct live_sums *sums, const struct live_block *block)
{
	number_site(sums, block->site);
}

static void sum_block(struct live_sums *sums, const struct live_block *block)
{
	struct live_sum *sum = sum_of(sums, block->site);
	struct sample_weight weight = torsh_heap_weigh(sums->heap, block);

	if (!sum->blocks || block->stamp < sum->first)
		sum->first = block->stamp;
	if (block->stamp > sum->last)
		sum->last = block->stamp;
	sum->blocks += (uint64_t)weight.blocks;
	sum->bytes += (uint64_t)weight.bytes;
	if (sums->heap->sampling.rate)
		torsh_sampling_add_variance(&sums->heap->sampling,
					    &sums->variances[sums->numbers[block->site]],
					    block->size);
	else
		sum->usable_bytes += block->usable;
}

/* Only the range of allocation times of all small blocks is known. */
static void add_small(struct live_sum *sum, const struct heap *heap)
{
	sum->blocks += heap->small.n_blocks;
	sum->bytes += heap->small.bytes;
	sum->usable_bytes += heap->small.usable_bytes;
	sum->first = heap->small_first;
	sum->last = heap->small_last;
}

/* Call for each live block; blocks in the middle of a realloc count too. */
static void visit_blocks(struct live_sums *sums, const struct target *target,
			 void (*visit)(struct live_sums *sums, const struct live_block *block))
{
	struct live_block block;
	uint64_t at = 0;

	while (torsh_live_next(&target->state.heap.live, &at, &block))
		visit(sums, &block);
	for (uint32_t i = 0; i < target->n_consumers; i++) {
		const struct heap_producer *producer = &target->consumers[i]->heap;

		if (producer->is_reallocating)
			visit(sums, &producer->old);
	}
}

/* ---- groups ---------------------------------------------------------------------------------- */

/*
 * Only blocks of sites that go on allocating after the first mark, region or step need groups: a
 * window contains all of the others or none.
 */
static bool is_grouped(const struct target *target, const struct live_sum *sum, uint32_t site)
{
	const struct heap *heap = &target->state.heap;
	uint64_t edge = target->state.first_edge_stamp;

	return edge && sum->blocks > 1 && sum->last > sum->first && site &&
	       site != heap->small_site && heap->first_stamp + sum->last >= edge;
}

/* Returns the number of groups of all sites if each has at most n_most. */
static uint64_t count_groups(const struct live_sums *sums, const struct target *target,
			     uint32_t n_most)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < target->state.heap.n_sites; i++) {
		const struct live_sum *sum = sum_of(sums, i);

		if (is_grouped(target, sum, i))
			n += sum->blocks < n_most ? sum->blocks : n_most;
	}
	return n;
}

static void add_to_group(struct live_sums *sums, const struct live_block *block)
{
	const struct live_sum *sum = sum_of(sums, block->site);
	struct live_grouping *grouping = &sums->groupings[sums->numbers[block->site]];
	struct live_group *group = &sums->groups[grouping->group];
	struct sample_weight weight = torsh_heap_weigh(sums->heap, block);

	if (!grouping->n_groups_max)
		return;
	if (sum->blocks == grouping->n_groups_max && !sums->heap->sampling.rate)
		group += grouping->n_groups++;
	else
		group +=
			(uint64_t)((double)(block->stamp - sum->first) /
				   ((double)(sum->last - sum->first) + 1) * grouping->n_groups_max);
	if (!group->blocks || block->stamp < group->first)
		group->first = block->stamp;
	if (block->stamp > group->last)
		group->last = block->stamp;
	group->blocks += (uint64_t)weight.blocks;
	group->bytes += (uint64_t)weight.bytes;
}

static int compare_groups(const void *a, const void *b)
{
	const struct live_group *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Remove empty groups, and put the others into the order of time. */
static void order_groups(struct live_grouping *grouping, struct live_group *groups)
{
	grouping->n_groups = 0;
	for (uint32_t i = 0; i < grouping->n_groups_max; i++) {
		if (groups[i].blocks)
			groups[grouping->n_groups++] = groups[i];
	}
	qsort(groups, grouping->n_groups, sizeof(*groups), compare_groups);
}

static void make_groups(struct live_sums *sums, const struct target *target)
{
	uint32_t n_most = ROWS_GROUPS_OF_SITE, n = 0;
	uint64_t n_all;

	while ((n_all = count_groups(sums, target, n_most)) > ROWS_GROUPS && n_most > 1)
		n_most /= 2;
	if (!n_all || n_all > ROWS_GROUPS)
		return;
	sums->groups = torsh_memory_new(n_all, sizeof(*sums->groups));
	sums->groupings = torsh_memory_new(sums->n, sizeof(*sums->groupings));
	for (uint32_t i = 0; i < target->state.heap.n_sites; i++) {
		const struct live_sum *sum = sum_of(sums, i);
		struct live_grouping *grouping = &sums->groupings[sums->numbers[i]];

		if (!is_grouped(target, sum, i))
			continue;
		grouping->group = n;
		grouping->n_groups_max = sum->blocks < n_most ? (uint32_t)sum->blocks : n_most;
		n += grouping->n_groups_max;
	}
	visit_blocks(sums, target, add_to_group);
	for (uint32_t i = 1; i < sums->n; i++)
		order_groups(&sums->groupings[i], sums->groups + sums->groupings[i].group);
}

struct live_sums *torsh_rows_sum_live(const struct target *target)
{
	const struct heap *heap = &target->state.heap;
	struct live_sums *sums = torsh_memory_new(1, sizeof(*sums));

	sums->heap = heap;
	sums->numbers = torsh_memory_new(heap->n_sites, sizeof(*sums->numbers));
	sums->n = 1;
	visit_blocks(sums, target, number_block);
	if (heap->small_site)
		number_site(sums, heap->small_site);
	sums->items = torsh_memory_new(sums->n, sizeof(*sums->items));
	if (heap->sampling.rate)
		sums->variances = torsh_memory_new(sums->n, sizeof(*sums->variances));
	visit_blocks(sums, target, sum_block);
	if (heap->small_site)
		add_small(sum_of(sums, heap->small_site), heap);
	make_groups(sums, target);
	return sums;
}

void torsh_rows_free_live(struct live_sums *sums)
{
	free(sums->numbers);
	free(sums->items);
	free(sums->variances);
	free(sums->groupings);
	free(sums->groups);
	free(sums);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t ns_of(const struct target *target, uint64_t stamp)
{
	return torsh_clock_to_ns(&target->state.clock, target->state.heap.first_stamp + stamp);
}

/* Of the sites from first on, at most ROWS_TOTALS. Adds their groups to *n_groups. */
static uint32_t count_sums(const struct live_sums *sums, uint32_t first, uint32_t n_sites,
			   uint32_t *n_groups)
{
	uint32_t n_used = 0;

	for (uint32_t i = first; i < n_sites && n_used < ROWS_TOTALS; i++) {
		n_used += sum_of(sums, i)->blocks != 0;
		*n_groups += grouping_of(sums, i).n_groups;
	}
	return n_used;
}

static void make_columns(Torsh__Live *row, struct rows_memory *memory, const struct target *target,
			 uint32_t n, uint32_t n_groups)
{
	ROWS_SET(row, process, target->number);
	ROWS_SET(row, at_ns, torsh_clock_to_ns(&target->state.clock, target->state.last_stamp));
	ROWS_SET(row, usable_is_known,
		 target->state.heap.n_usable_unknown == 0 && !target->state.heap.sampling.rate);
	ROWS_SET(row, times_are_exact, true);
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, blocks, n);
	ROWS_COLUMN(memory, row, bytes, n);
	ROWS_COLUMN(memory, row, usable_bytes, n);
	ROWS_COLUMN(memory, row, first_ns, n);
	ROWS_COLUMN(memory, row, last_ns, n);
	if (target->state.steps.n) {
		ROWS_COLUMN(memory, row, step_of_first, n);
		ROWS_COLUMN(memory, row, step_of_last, n);
	}
	if (target->state.heap.sampling.rate) {
		ROWS_COLUMN(memory, row, blocks_variance, n);
		ROWS_COLUMN(memory, row, bytes_variance, n);
	}
	if (!n_groups)
		return;
	ROWS_COLUMN(memory, row, group_count, n);
	ROWS_COLUMN(memory, row, group_after_ns, n_groups);
	ROWS_COLUMN(memory, row, group_length_ns, n_groups);
	ROWS_COLUMN(memory, row, group_blocks, n_groups);
	ROWS_COLUMN(memory, row, group_bytes, n_groups);
}

/* Each group begins so much after the end of the one before; the first one after first_ns. */
static void put_groups(Torsh__Live *row, uint32_t i, const struct target *target,
		       const struct live_grouping *grouping, const struct live_group *groups,
		       uint32_t *at)
{
	uint64_t end_ns = row->first_ns[i];

	row->group_count[i] = grouping->n_groups;
	for (uint32_t k = 0; k < grouping->n_groups; k++, ++*at) {
		uint64_t first_ns = ns_of(target, groups[k].first);
		uint64_t last_ns = ns_of(target, groups[k].last);

		row->group_after_ns[*at] = first_ns - end_ns;
		row->group_length_ns[*at] = last_ns - first_ns;
		row->group_blocks[*at] = groups[k].blocks;
		row->group_bytes[*at] = groups[k].bytes;
		end_ns = last_ns;
	}
}

static void put_steps(Torsh__Live *row, uint32_t i, const struct target *target,
		      const struct live_sum *sum)
{
	const struct step_marks *steps = &target->state.steps;
	uint64_t zero = target->state.heap.first_stamp;

	row->step_of_first[i] = torsh_step_marks_name_at(steps, zero + sum->first);
	row->step_of_last[i] = torsh_step_marks_name_at(steps, zero + sum->last);
}

void torsh_rows_put_live(Torsh__Live *row, struct rows_memory *memory, const struct target *target,
			 const struct live_sums *sums, uint32_t *site)
{
	const struct heap *heap = &target->state.heap;
	uint32_t n_groups = 0, at_group = 0, i = 0;
	uint32_t n = count_sums(sums, *site, heap->n_sites, &n_groups);

	make_columns(row, memory, target, n, n_groups);
	for (; i < n; ++*site) {
		const struct live_sum *sum = sum_of(sums, *site);
		struct live_grouping grouping = grouping_of(sums, *site);

		if (!sum->blocks)
			continue;
		row->stack[i] = heap->sites[*site].stack;
		row->blocks[i] = sum->blocks;
		row->bytes[i] = sum->bytes;
		row->usable_bytes[i] = sum->usable_bytes;
		row->first_ns[i] = ns_of(target, sum->first);
		row->last_ns[i] = ns_of(target, sum->last);
		if (row->n_step_of_first)
			put_steps(row, i, target, sum);
		if (row->n_bytes_variance) {
			const struct sample_variance *variance =
				&sums->variances[sums->numbers[*site]];

			row->blocks_variance[i] = variance->blocks;
			row->bytes_variance[i] = variance->bytes;
		}
		if (n_groups)
			put_groups(row, i, target, &grouping, sums->groups + grouping.group,
				   &at_group);
		i++;
	}
	if (!count_sums(sums, *site, heap->n_sites, &n_groups))
		*site = heap->n_sites;
}
