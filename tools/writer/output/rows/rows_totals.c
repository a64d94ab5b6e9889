/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rows that change: totals by stack, the heap, mappings, the series. */
#include <stdbool.h>
#include <string.h>

#include "tools/writer/output/rows/rows_parts.h"

static uint64_t ns_of(const struct target *target, uint64_t stamp)
{
	return torsh_clock_to_ns(&target->state.clock, stamp);
}

void torsh_rows_make_totals(Torsh__StackTotals *row, struct rows_memory *memory, uint32_t n)
{
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, allocs, n);
	ROWS_COLUMN(memory, row, alloc_bytes, n);
	ROWS_COLUMN(memory, row, temporary, n);
	ROWS_COLUMN(memory, row, temporary_bytes, n);
	ROWS_COLUMN(memory, row, seen, n);
	ROWS_COLUMN(memory, row, base_blocks, n);
	ROWS_COLUMN(memory, row, base_bytes, n);
	ROWS_COLUMN(memory, row, delta_blocks, n);
	ROWS_COLUMN(memory, row, delta_bytes, n);
}

static void put_site(Torsh__StackTotals *row, uint32_t i, uint32_t stack,
		     const struct site_totals *totals)
{
	row->stack[i] = stack;
	row->allocs[i] = totals->allocs;
	row->alloc_bytes[i] = totals->alloc_bytes;
	row->temporary[i] = totals->temporary;
	row->temporary_bytes[i] = totals->temporary_bytes;
	row->seen[i] = totals->live.seen;
	row->base_blocks[i] = totals->live.base_n;
	row->base_bytes[i] = totals->live.base_bytes;
	row->delta_blocks[i] = (int64_t)(totals->live.n - totals->live.base_n);
	row->delta_bytes[i] = (int64_t)(totals->live.bytes - totals->live.base_bytes);
	if (row->n_in_operator) {
		row->in_operator[i] = totals->scope.operator;
		row->in_module[i] = totals->scope.module;
	}
}

static void put_steps(Torsh__StackTotals *row, uint32_t i, const struct site_usage *usage,
		      bool is_by_optimizer)
{
	row->step_of_first[i] = torsh_step_marks_final(usage->first_step, is_by_optimizer);
	row->step_of_last[i] = torsh_step_marks_final(usage->last_step, is_by_optimizer);
	row->base_step_of_first[i] =
		torsh_step_marks_final(usage->base_first_step, is_by_optimizer);
	row->base_step_of_last[i] = torsh_step_marks_final(usage->base_last_step, is_by_optimizer);
}

static bool has_scope(const struct site_totals *totals)
{
	return (totals->scope.operator| totals->scope.module) != 0;
}

static bool has_step(const struct site_totals *totals)
{
	const struct site_usage *usage = &totals->live;

	return (usage->first_step | usage->last_step | usage->base_first_step |
		usage->base_last_step) != 0;
}

/* Returns true if has() is true for one of the n changed sites from first on. */
static bool have(const struct heap *heap, uint32_t first, uint32_t n,
		 bool (*has)(const struct site_totals *totals))
{
	for (uint32_t i = first; i < heap->n_sites && n; i++) {
		struct site_totals totals;

		if (!heap->sites[i].is_changed)
			continue;
		n--;
		totals = torsh_heap_totals(heap, i);
		if (has(&totals))
			return true;
	}
	return false;
}

static uint32_t count_changed(const struct heap *heap, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < heap->n_sites && n < ROWS_TOTALS; i++)
		n += heap->sites[i].is_changed;
	return n;
}

static void make_variances(Torsh__StackTotals *row, struct rows_memory *memory, uint32_t n)
{
	ROWS_COLUMN(memory, row, alloc_blocks_variance, n);
	ROWS_COLUMN(memory, row, alloc_bytes_variance, n);
	ROWS_COLUMN(memory, row, base_blocks_variance, n);
	ROWS_COLUMN(memory, row, base_bytes_variance, n);
	ROWS_COLUMN(memory, row, live_blocks_variance, n);
	ROWS_COLUMN(memory, row, live_bytes_variance, n);
}

static void put_variances(Torsh__StackTotals *row, uint32_t i, const struct heap *heap,
			  uint32_t site)
{
	struct site_variance variance = torsh_sampling_of_site(&heap->sampling, site);

	row->alloc_blocks_variance[i] = variance.total.blocks;
	row->alloc_bytes_variance[i] = variance.total.bytes;
	row->base_blocks_variance[i] = variance.base.blocks;
	row->base_bytes_variance[i] = variance.base.bytes;
	row->live_blocks_variance[i] = variance.live.blocks;
	row->live_bytes_variance[i] = variance.live.bytes;
}

bool torsh_rows_put_stack_totals(Torsh__StackTotals *row, struct rows_memory *memory,
				 const struct target *target, uint32_t *site)
{
	const struct heap *heap = &target->state.heap;
	bool is_by_optimizer = target->state.steps.source == STEP_BY_OPTIMIZER;
	uint32_t n = count_changed(heap, *site), i = 0;

	ROWS_SET(row, process, target->number);
	torsh_rows_make_totals(row, memory, n);
	if (have(heap, *site, n, has_scope)) {
		ROWS_COLUMN(memory, row, in_operator, n);
		ROWS_COLUMN(memory, row, in_module, n);
	}
	if (have(heap, *site, n, has_step)) {
		ROWS_COLUMN(memory, row, step_of_first, n);
		ROWS_COLUMN(memory, row, step_of_last, n);
		ROWS_COLUMN(memory, row, base_step_of_first, n);
		ROWS_COLUMN(memory, row, base_step_of_last, n);
	}
	if (heap->sampling.rate)
		make_variances(row, memory, n);
	for (; i < n; (*site)++) {
		struct site_totals totals;

		if (!heap->sites[*site].is_changed)
			continue;
		totals = torsh_heap_totals(heap, *site);
		put_site(row, i, heap->sites[*site].stack, &totals);
		if (row->n_alloc_bytes_variance)
			put_variances(row, i, heap, *site);
		if (row->n_step_of_first)
			put_steps(row, i, &totals.live, is_by_optimizer);
		i++;
	}
	if (!count_changed(heap, *site))
		*site = heap->n_sites;
	return n != 0;
}

/* A forked process frees blocks of its parent, and their stacks are in the parent's rows. */
static void put_unknown_frees(Torsh__Heap *row, const struct target *target)
{
	const struct inheritance *inheritance = &target->inheritance;

	ROWS_SET(row, pause_frees, target->state.heap.pause_frees);
	ROWS_SET(row, unknown_frees, inheritance->is_fork ? 0 : target->state.heap.unknown_frees);
	if (!inheritance->is_fork)
		return;
	ROWS_SET(row, inherited_frees, target->state.heap.unknown_frees);
	if (inheritance->has_blocks)
		ROWS_SET(row, inherited_blocks, inheritance->blocks);
	if (inheritance->has_bytes)
		ROWS_SET(row, inherited_bytes, inheritance->bytes);
}

/* The classes count stamps, which are no whole number of ns. */
static void put_lifetimes(Torsh__Heap *row, struct rows_memory *memory, const struct target *target)
{
	const struct heap *heap = &target->state.heap;
	const struct clock_rate *rate = target->state.clock.rate;
	double ns_per_tick = rate ? rate->ns_per_tick : 1.0;
	uint32_t n = HEAP_SIZE_CLASSES;

	while (n && !heap->lifetimes[n - 1].blocks)
		n--;
	ROWS_COLUMN(memory, row, lifetime_from_ns, n);
	ROWS_COLUMN(memory, row, lifetime_blocks, n);
	ROWS_COLUMN(memory, row, lifetime_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t stamps = i ? UINT64_C(1) << (i - 1) : 0;

		row->lifetime_from_ns[i] =
			(uint64_t)((double)stamps * (1u << CHANNEL_STAMP_SHIFT) * ns_per_tick);
		row->lifetime_blocks[i] = heap->lifetimes[i].blocks;
		row->lifetime_bytes[i] = heap->lifetimes[i].bytes;
	}
}

/* Of all blocks, where the others are estimates from samples. */
static void put_exact_counts(Torsh__Heap *row, struct rows_memory *memory,
			     const struct target *target)
{
	struct target_heap_counts counts;

	torsh_target_count_heap(target, &counts);
	ROWS_SET(row, sampled_every, target->state.heap.sampling.rate);
	ROWS_SET(row, allocs, counts.allocs);
	ROWS_SET(row, frees, counts.frees);
	ROWS_SET(row, alloc_bytes, counts.alloc_bytes);
	memset(row->size_blocks, 0, HEAP_SIZE_CLASSES * sizeof(*row->size_blocks));
	memcpy(row->size_blocks, counts.size_blocks, sizeof(counts.size_blocks));
	ROWS_COLUMN(memory, row, size_bytes, CHANNEL_SIZE_CLASSES);
	memcpy(row->size_bytes, counts.size_bytes, sizeof(counts.size_bytes));
}

void torsh_rows_put_heap(Torsh__Heap *row, struct rows_memory *memory, const struct target *target)
{
	const struct process_state *state = &target->state;
	const struct heap *heap = &state->heap;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, peak_number, heap->tracker.peak_number);
	ROWS_SET(row, peak_bytes, heap->tracker.peak_bytes);
	ROWS_SET(row, peak_blocks, heap->tracker.peak_n);
	ROWS_SET(row, peak_ns, ns_of(target, heap->tracker.peak_stamp));
	ROWS_SET(row, current_bytes, heap->tracker.bytes);
	ROWS_SET(row, current_blocks, heap->tracker.n);
	ROWS_SET(row, allocs, heap->allocs);
	ROWS_SET(row, frees, heap->frees);
	ROWS_SET(row, alloc_bytes, heap->alloc_bytes);
	ROWS_SET(row, reallocs, heap->reallocs);
	ROWS_SET(row, temporary, heap->temporary);
	ROWS_SET(row, implicit_frees, heap->implicit_frees);
	ROWS_SET(row, current_usable_bytes, heap->usable_bytes);
	ROWS_SET(row, late_events, state->late_events);
	ROWS_SET(row, lost_allocs, state->lost_allocs);
	ROWS_SET(row, lost_frees, state->lost_frees);
	ROWS_SET(row, lost_others, state->lost_others);
	put_unknown_frees(row, target);
	ROWS_COLUMN(memory, row, size_blocks, HEAP_SIZE_CLASSES);
	memcpy(row->size_blocks, heap->size_blocks, sizeof(heap->size_blocks));
	if (heap->sampling.rate)
		put_exact_counts(row, memory, target);
	put_lifetimes(row, memory, target);
}

void torsh_rows_put_mappings(Torsh__Mappings *row, struct rows_memory *memory,
			     const struct target *target, uint32_t *site)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct map_site *sites = mappings->sites + *site;
	uint32_t n =
		mappings->n_sites - *site < ROWS_TOTALS ? mappings->n_sites - *site : ROWS_TOTALS;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, peak_number, mappings->tracker.peak_number);
	ROWS_SET(row, peak_bytes, mappings->tracker.peak_bytes);
	ROWS_SET(row, peak_ns, ns_of(target, mappings->tracker.peak_stamp));
	ROWS_SET(row, current_bytes, mappings->tracker.bytes);
	ROWS_SET(row, maps, mappings->maps);
	ROWS_SET(row, unmaps, mappings->unmaps);
	ROWS_SET(row, advised_bytes, mappings->advised_bytes);
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, seen, n);
	ROWS_COLUMN(memory, row, base_pieces, n);
	ROWS_COLUMN(memory, row, base_bytes, n);
	ROWS_COLUMN(memory, row, delta_pieces, n);
	ROWS_COLUMN(memory, row, delta_bytes, n);
	ROWS_COLUMN(memory, row, total_bytes, n);
	ROWS_COLUMN(memory, row, kinds, n);
	ROWS_COLUMN(memory, row, path, n);
	row->n_paths = mappings->n_paths;
	row->paths = mappings->paths;
	for (uint32_t i = 0; i < n; i++) {
		row->kinds[i] = sites[i].kinds;
		row->path[i] = sites[i].path;
		row->stack[i] = sites[i].stack;
		row->seen[i] = sites[i].live.seen;
		row->base_pieces[i] = (int64_t)sites[i].live.base_n;
		row->base_bytes[i] = (int64_t)sites[i].live.base_bytes;
		row->delta_pieces[i] = (int64_t)(sites[i].live.n - sites[i].live.base_n);
		row->delta_bytes[i] = (int64_t)(sites[i].live.bytes - sites[i].live.base_bytes);
		row->total_bytes[i] = sites[i].total_bytes;
	}
	*site += n;
}

void torsh_rows_put_series(Torsh__Series *row, struct rows_memory *memory,
			   const struct target *target)
{
	const struct series *series = &target->state.series;
	uint32_t n = series->n_points;

	ROWS_SET(row, process, target->number);
	ROWS_COLUMN(memory, row, at_ns, n);
	ROWS_COLUMN(memory, row, heap_bytes, n);
	ROWS_COLUMN(memory, row, mapped_bytes, n);
	ROWS_COLUMN(memory, row, rss_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		row->at_ns[i] = ns_of(target, series->points[i].stamp);
		row->heap_bytes[i] = series->points[i].heap_bytes;
		row->mapped_bytes[i] = series->points[i].mapped_bytes;
		row->rss_bytes[i] = series->points[i].rss_bytes;
	}
}

void torsh_rows_put_cpu_time(Torsh__CpuTime *row, struct rows_memory *memory,
			     const struct target *target)
{
	const struct sum_points *points = &target->usage.cpu.points;
	uint32_t n = points->n;

	ROWS_SET(row, process, target->number);
	ROWS_COLUMN(memory, row, at_ns, n);
	ROWS_COLUMN(memory, row, ran_ns, n);
	ROWS_COLUMN(memory, row, waited_ns, n);
	for (uint32_t i = 0; i < n; i++) {
		row->at_ns[i] = ns_of(target, points->items[i].stamp);
		row->ran_ns[i] = points->items[i].sums[0];
		row->waited_ns[i] = points->items[i].sums[1];
	}
}

void torsh_rows_put_cpu_supply(Torsh__CpuSupply *row, struct rows_memory *memory,
			       const struct target *target)
{
	const struct cpu_supply *supply = &target->usage.supply;
	const struct sum_points *points = &target->usage.supply_points;
	uint32_t n = points->n;

	ROWS_SET(row, process, target->number);
	ROWS_COLUMN(memory, row, at_ns, n);
	for (uint32_t i = 0; i < n; i++)
		row->at_ns[i] = ns_of(target, points->items[i].stamp);
	if (supply->has_throttling) {
		ROWS_COLUMN(memory, row, throttled_ns, n);
		for (uint32_t i = 0; i < n; i++)
			row->throttled_ns[i] = points->items[i].sums[0];
	}
	if (supply->has_stolen) {
		ROWS_COLUMN(memory, row, stolen_ns, n);
		for (uint32_t i = 0; i < n; i++)
			row->stolen_ns[i] = points->items[i].sums[1];
	}
}
