/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/heap_series.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/stack_entries.h"

/* A small site has less than one in so many bytes. */
#define SHARE 1000u

/* ---- all stacks ------------------------------------------------------------------------------ */

static struct series_stack *stack_of(struct heap_series *series, uint32_t stack)
{
	uint32_t *number = torsh_sparse_array_at(&series->number_of, stack);

	if (!*number) {
		series->stacks = torsh_array_reserve(series->stacks, series->n_stacks,
						     &series->stacks_room, sizeof(*series->stacks));
		series->stacks[series->n_stacks] = (struct series_stack){.stack = stack};
		*number = (uint32_t)++series->n_stacks;
	}
	return &series->stacks[*number - 1];
}

static void note_site(const struct allocation_site *site, void *series)
{
	stack_of(series, site->stack);
}

static void note_usages(struct heap_series *series, const struct recorded_moment *moment)
{
	struct usage_at usage = {0};

	while (torsh_usage_list_next(&moment->usages, &usage))
		stack_of(series, usage.number);
}

static void note_stacks(struct heap_series *series)
{
	const struct recorded_process *process = series->moments.process;

	torsh_sites_each(process, SITES_ALLOCATED, note_site, series);
	torsh_sites_each(process, SITES_PEAK, note_site, series);
	torsh_sites_each(process, SITES_LIVE, note_site, series);
	torsh_sites_each(process, SITES_CURRENT, note_site, series);
	for (size_t i = 0; i < process->n_moments; i++)
		note_usages(series, &process->moments[i]);
	for (size_t i = 0; i < process->n_window_peaks; i++)
		note_usages(series, &process->window_peaks[i]);
}

/* ---- moments, one after the other ------------------------------------------------------------ */

/* The usage of all sites while the moments are gone through. */
struct replay {
	const struct heap_series *series;
	struct site_amount *kept; /* by stacks' index: after n_applied moments of the writer */
	struct site_amount *sums; /* of kept, by site */
	size_t n_applied;
	struct site_amount *now; /* by site */
	size_t n_sites;
};

static const struct series_stack *find_stack(const struct heap_series *series, uint32_t stack,
					     size_t *index)
{
	const uint32_t *number = torsh_sparse_array_find(&series->number_of, stack);

	*index = *number - 1;
	return &series->stacks[*index];
}

static void add_amount(struct replay *replay, uint32_t stack, uint64_t bytes, uint64_t blocks)
{
	size_t index;
	struct site_amount *now = &replay->now[find_stack(replay->series, stack, &index)->site];

	now->bytes += bytes;
	now->blocks += blocks;
}

static void add_site(const struct allocation_site *site, void *replay)
{
	add_amount(replay, site->stack, site->bytes, site->blocks);
}

static void add_usages(struct replay *replay, const struct recorded_moment *moment)
{
	struct usage_at usage = {0};

	while (torsh_usage_list_next(&moment->usages, &usage))
		add_amount(replay, usage.number, usage.bytes, usage.blocks);
}

/* A moment of the writer has only what changed since the one before. */
static void apply_changes(struct replay *replay, const struct recorded_moment *moment)
{
	struct usage_at usage = {0};

	while (torsh_usage_list_next(&moment->usages, &usage)) {
		size_t index;
		uint32_t site = find_stack(replay->series, usage.number, &index)->site;
		struct site_amount *kept = &replay->kept[index], *sum = &replay->sums[site];

		sum->bytes += usage.bytes - kept->bytes;
		sum->blocks += usage.blocks - kept->blocks;
		*kept = (struct site_amount){.bytes = usage.bytes, .blocks = usage.blocks};
	}
}

/* Moments at one time may come in another order than the writer's: then it begins anew. */
static void set_kept(struct replay *replay, size_t moment)
{
	const struct heap_series *series = replay->series;

	if (replay->n_applied > moment + 1) {
		memset(replay->kept, 0, series->n_stacks * sizeof(*replay->kept));
		memset(replay->sums, 0, replay->n_sites * sizeof(*replay->sums));
		replay->n_applied = 0;
	}
	for (; replay->n_applied <= moment; replay->n_applied++)
		apply_changes(replay, &series->moments.process->moments[replay->n_applied]);
	memcpy(replay->now, replay->sums, replay->n_sites * sizeof(*replay->now));
}

static void set_moment(struct replay *replay, const struct memory_moment *moment)
{
	const struct recorded_process *process = replay->series->moments.process;

	memset(replay->now, 0, replay->n_sites * sizeof(*replay->now));
	switch (moment->kind) {
	case MEMORY_AT_START:
		return;
	case MEMORY_AT_PEAK:
		torsh_sites_each(process, SITES_PEAK, add_site, replay);
		return;
	case MEMORY_AT_END:
		torsh_sites_each(process, SITES_CURRENT, add_site, replay);
		return;
	case MEMORY_AT_JOINT:
	case MEMORY_AT_WINDOW:
		add_usages(replay, &process->window_peaks[moment->index]);
		return;
	default:
		set_kept(replay, moment->index);
	}
}

static struct replay start_replay(const struct heap_series *series, size_t n_sites)
{
	size_t item_bytes = sizeof(struct site_amount);

	return (struct replay){
		.series = series,
		.kept = torsh_need_items(NULL, 0, series->n_stacks + 1, item_bytes),
		.sums = torsh_need_items(NULL, 0, n_sites + 1, item_bytes),
		.now = torsh_need_items(NULL, 0, n_sites + 1, item_bytes),
		.n_sites = n_sites,
	};
}

static void end_replay(struct replay *replay)
{
	free(replay->kept);
	free(replay->sums);
	free(replay->now);
}

/* Returns the amount of that kind of each site. */
static struct site_amount *sum_sites(const struct heap_series *series, size_t n_sites,
				     enum sites_of what)
{
	struct replay replay = {
		.series = series,
		.now = torsh_need_items(NULL, 0, n_sites + 1, sizeof(*replay.now)),
	};

	torsh_sites_each(series->moments.process, what, add_site, &replay);
	return replay.now;
}

struct site_amount *torsh_heap_series_sum(const struct heap_series *series, enum sites_of what)
{
	return sum_sites(series, series->sites.n, what);
}

void torsh_heap_series_each(const struct heap_series *series,
			    void (*each)(const struct heap_series *series, size_t moment,
					 const struct site_amount *amounts, void *context),
			    void *context)
{
	struct replay replay = start_replay(series, series->sites.n);

	for (size_t i = 0; i < series->moments.n; i++) {
		set_moment(&replay, &series->moments.items[i]);
		each(series, i, replay.now, context);
	}
	end_replay(&replay);
}

/* Returns the highest amount of each site. */
static struct site_amount *find_highest(const struct heap_series *series, size_t n_sites)
{
	struct site_amount *highest = torsh_need_items(NULL, 0, n_sites + 1, sizeof(*highest));
	struct replay replay = start_replay(series, n_sites);
	const struct site_amount *now = replay.now;

	for (size_t moment = 0; moment < series->moments.n; moment++) {
		set_moment(&replay, &series->moments.items[moment]);
		for (size_t i = 0; i < n_sites; i++)
			if (now[i].bytes > highest[i].bytes ||
			    (now[i].bytes == highest[i].bytes && now[i].blocks > highest[i].blocks))
				highest[i] = now[i];
	}
	end_replay(&replay);
	return highest;
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* A site before it is known which ones are shown: there may be millions. */
struct merged_site {
	uint32_t stack; /* as it is shown */
	uint32_t operator, module;
};

struct merged_sites {
	struct merged_site *items; /* items[0]: none of the others */
	size_t n, n_room;
};

/* Returns the label of what has both. */
static uint32_t merged_label(uint32_t one, uint32_t other)
{
	return one == other ? one : PROFILE_SEVERAL;
}

static uint32_t put_site(struct merged_sites *sites, struct merged_site site)
{
	sites->items =
		torsh_array_reserve(sites->items, sites->n, &sites->n_room, sizeof(*sites->items));
	sites->items[sites->n] = site;
	return (uint32_t)sites->n++;
}

/* Give each stack its site, merged as reports merge stacks. */
static void merge_stacks(struct heap_series *series, struct recorded_process *process,
			 struct symbols *symbols, struct merged_sites *sites)
{
	struct sparse_array site_of; /* uint32_t by entry */
	struct stack_entries entries;

	put_site(sites, (struct merged_site){0});
	torsh_sparse_array_create(&site_of, sizeof(uint32_t));
	torsh_stack_entries_start(&entries, process, symbols);
	for (size_t i = 0; i < series->n_stacks; i++) {
		uint32_t stack = series->stacks[i].stack,
			 shown = torsh_stack_view(process, stack, symbols, STACK_VIEW_MERGED),
			 *number = torsh_sparse_array_at(&site_of,
							 torsh_stack_entry(&entries, shown, false));
		struct recorded_total total = {0};

		torsh_totals_find(&process->totals, stack, &total);
		if (*number) {
			struct merged_site *site = &sites->items[*number];

			site->operator= merged_label(site->operator, total.operator);
			site->module = merged_label(site->module, total.module);
		} else {
			*number = put_site(sites, (struct merged_site){shown, total.operator,
								       total.module});
		}
		series->stacks[i].site = *number;
	}
	torsh_stack_entries_end(&entries);
	torsh_sparse_array_destroy(&site_of);
}

/* Replace each stack's site by its new index; sites of index 0 are freed. */
static void renumber(struct heap_series *series, const uint32_t *numbers, size_t n_new)
{
	struct allocation_site *items = torsh_need_items(NULL, 0, n_new, sizeof(*items));

	for (size_t i = series->sites.n; i-- > 0;) {
		struct allocation_site *site = &series->sites.items[i], *to = &items[numbers[i]];

		/* The first one of those that are merged is the one that stays. */
		free(to->frames);
		*to = *site;
	}
	for (size_t i = 0; i < series->n_stacks; i++)
		series->stacks[i].site = numbers[series->stacks[i].site];
	free(series->sites.items);
	series->sites.items = items;
	series->sites.n = series->sites.n_room = n_new;
}

static void merge_labels(struct allocation_site *site, const struct allocation_site *other)
{
	site->operator= merged_label(site->operator, other->operator);
	site->module = merged_label(site->module, other->module);
}

/* Name the sites, and merge those that look alike then. */
static void merge_alike(struct heap_series *series, struct symbols *symbols)
{
	size_t *firsts, n = 0;
	uint32_t *numbers;

	torsh_sites_find_frames(&series->sites, symbols, series->sites.n);
	firsts = torsh_sites_find_alike(&series->sites, symbols);
	numbers = torsh_need_items(NULL, 0, series->sites.n, sizeof(*numbers));
	for (size_t i = 0; i < series->sites.n; i++) {
		/* Nothing is like the sum of the others. */
		if (firsts[i] == i || !firsts[i]) {
			numbers[i] = (uint32_t)n++;
			continue;
		}
		numbers[i] = numbers[firsts[i]];
		merge_labels(&series->sites.items[firsts[i]], &series->sites.items[i]);
	}
	renumber(series, numbers, n);
	free(numbers);
	free(firsts);
}

/* Returns an array of whether each site allocates a share of all blocks or bytes. */
static bool *find_busy(const struct heap_series *series, size_t n_sites)
{
	const struct recorded_heap *heap = &series->moments.process->heap;
	struct site_amount *made = sum_sites(series, n_sites, SITES_ALLOCATED);
	bool *is_busy = torsh_need_items(NULL, 0, n_sites, sizeof(*is_busy));

	for (size_t i = 0; i < n_sites; i++)
		is_busy[i] = made[i].bytes > heap->alloc_bytes / SHARE ||
			     made[i].blocks > heap->allocs / SHARE;
	free(made);
	return is_busy;
}

/* Make the sites of those that are shown, in any order; the small ones are in the first one. */
static void choose_sites(struct heap_series *series, const struct merged_sites *merged, bool is_all)
{
	const struct recorded_process *process = series->moments.process;
	uint64_t min_bytes = process->heap.peak_bytes / SHARE;
	struct site_amount *highest = find_highest(series, merged->n);
	uint32_t *numbers = torsh_need_items(NULL, 0, merged->n, sizeof(*numbers));
	bool *is_busy = find_busy(series, merged->n);
	struct allocation_sites *sites = &series->sites;

	for (size_t i = 0; i < merged->n; i++) {
		const struct merged_site *from = &merged->items[i];

		if (i && !is_all && highest[i].bytes < min_bytes && !is_busy[i]) {
			series->n_others++;
			continue;
		}
		numbers[i] = (uint32_t)sites->n;
		sites->items = torsh_array_reserve(sites->items, sites->n, &sites->n_room,
						   sizeof(*sites->items));
		sites->items[sites->n++] = (struct allocation_site){.process = process,
								    .stack = from->stack,
								    .operator= from->operator,
								    .module = from->module,
								    .bytes = highest[i].bytes,
								    .blocks = highest[i].blocks};
	}
	for (size_t i = 0; i < series->n_stacks; i++)
		series->stacks[i].site = numbers[series->stacks[i].site];
	free(is_busy);
	free(highest);
	free(numbers);
}

static int compare_sites(const void *a, const void *b, void *items)
{
	size_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct allocation_site *sites = items;

	return torsh_sites_compare_order(ORDER_BYTES, &sites[x], &sites[y]);
}

/* The first one stays. */
static void sort_sites(struct heap_series *series)
{
	size_t n = series->sites.n;
	uint32_t *order = torsh_need_items(NULL, 0, n, sizeof(*order)),
		 *numbers = torsh_need_items(NULL, 0, n, sizeof(*numbers));

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order + 1, n - 1, sizeof(*order), compare_sites, series->sites.items);
	for (uint32_t i = 0; i < n; i++)
		numbers[order[i]] = i;
	renumber(series, numbers, n);
	free(order);
	free(numbers);
}

/* What they had before they were merged is less. */
static void set_highest(struct heap_series *series)
{
	struct allocation_sites *sites = &series->sites;
	struct site_amount *highest = find_highest(series, sites->n);

	for (size_t i = 0; i < sites->n; i++) {
		sites->items[i].bytes = highest[i].bytes;
		sites->items[i].blocks = highest[i].blocks;
	}
	free(highest);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void torsh_heap_series_make(struct heap_series *series, struct recorded_process *process,
			    struct symbols *symbols, bool is_all)
{
	struct merged_sites merged = {0};

	*series = (struct heap_series){0};
	torsh_memory_moments_make(&series->moments, process);
	torsh_sparse_array_create(&series->number_of, sizeof(uint32_t));
	if (!series->moments.n)
		return;
	note_stacks(series);
	merge_stacks(series, process, symbols, &merged);
	choose_sites(series, &merged, is_all);
	free(merged.items);
	sort_sites(series);
	merge_alike(series, symbols);
	set_highest(series);
}

void torsh_heap_series_free(struct heap_series *series)
{
	torsh_memory_moments_free(&series->moments);
	torsh_sites_free(&series->sites);
	torsh_sparse_array_destroy(&series->number_of);
	free(series->stacks);
}
