/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocation_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/arena.h"

void torsh_sites_put(struct allocation_sites *sites, const struct allocation_site *site)
{
	if (!site->blocks && !site->bytes)
		return;
	sites->items =
		torsh_array_reserve(sites->items, sites->n, &sites->n_room, sizeof(*sites->items));
	sites->items[sites->n++] = *site;
}

void torsh_sites_add(struct allocation_sites *sites, const struct allocation_site *site)
{
	struct allocation_site scoped = *site;
	struct recorded_total total;

	if (!site->blocks && !site->bytes)
		return;
	torsh_totals_find(&site->process->totals, site->stack, &total);
	scoped.operator= total.operator;
	scoped.module = total.module;
	torsh_sites_put(sites, &scoped);
}

static const char *name_of(const struct recorded_process *process, uint32_t label)
{
	return label && label <= process->n_functions ? process->functions[label - 1].name : NULL;
}

const char *torsh_site_operator(const struct allocation_site *site)
{
	return name_of(site->process, site->operator);
}

const char *torsh_site_module(const struct allocation_site *site)
{
	return name_of(site->process, site->module);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* base + delta, which is negative only in a damaged recording. */
static uint64_t share(uint64_t base, int64_t delta)
{
	uint64_t sum = base + (uint64_t)delta;

	return (int64_t)sum < 0 ? 0 : sum;
}

static void collect_live(struct allocation_sites *sites, const struct recorded_process *process)
{
	const struct recorded_live *live = process->live.items;

	for (size_t i = 0; i < process->live.n; i++) {
		torsh_sites_add(sites,
				&(struct allocation_site){
					.process = process,
					.stack = live[i].stack,
					.blocks = less(live[i].blocks, live[i].inherited_blocks),
					.bytes = less(live[i].bytes, live[i].inherited_bytes),
					.variance = live[i].variance,
					.usable_bytes = live[i].usable_bytes,
					.usable_is_known = process->usable_is_known &&
							   !live[i].inherited_blocks,
					.first_ns = live[i].first_ns,
					.last_ns = live[i].last_ns,
					.has_times = true,
					.first_step = live[i].first_step,
					.last_step = live[i].last_step,
				});
	}
}

/* is_live: usage at the end; otherwise usage at the peak. */
static void collect_usages(struct allocation_sites *sites, const struct recorded_process *process,
			   bool is_live)
{
	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total = torsh_totals_at(&process->totals, i);
		bool is_moved = is_live || total.seen != process->heap.peak_number;

		torsh_sites_put(
			sites,
			&(struct allocation_site){
				.process = process,
				.stack = total.stack,
				.operator= total.operator,
				.module = total.module,
				.first_step = is_moved ? total.first_step : total.base_first_step,
				.last_step = is_moved ? total.last_step : total.base_last_step,
				.blocks =
					share(total.base_blocks, is_moved ? total.delta_blocks : 0),
				.bytes = share(total.base_bytes, is_moved ? total.delta_bytes : 0),
				.variance = is_moved ? total.live_variance : total.base_variance,
			});
	}
}

static void collect_joint(struct allocation_sites *sites, const struct recorded_process *process)
{
	const struct recorded_session_usage *share = process->session_usages.items;

	for (size_t i = 0; i < process->session_usages.n; i++) {
		torsh_sites_add(sites, &(struct allocation_site){
					       .process = process,
					       .stack = share[i].stack,
					       .blocks = share[i].blocks,
					       .bytes = share[i].bytes,
					       .first_step = share[i].first_step,
					       .last_step = share[i].last_step,
				       });
	}
}

static void collect_totals(struct allocation_sites *sites, const struct recorded_process *process,
			   bool is_temporary)
{
	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total = torsh_totals_at(&process->totals, i);

		torsh_sites_put(
			sites,
			&(struct allocation_site){
				.process = process,
				.stack = total.stack,
				.operator= total.operator,
				.module = total.module,
				.blocks = is_temporary ? total.temporary : total.allocs,
				.bytes = is_temporary ? total.temporary_bytes : total.alloc_bytes,
				.variance = total.alloc_variance,
			});
	}
}

static void collect_mapped(struct allocation_sites *sites, const struct recorded_process *process)
{
	const struct recorded_mapping *mapping = process->mappings.items;

	for (size_t i = 0; i < process->mappings.n; i++) {
		bool is_moved = mapping[i].seen != process->vm.peak_number;
		int64_t pieces = mapping[i].base_pieces + (is_moved ? mapping[i].delta_pieces : 0);
		int64_t bytes = mapping[i].base_bytes + (is_moved ? mapping[i].delta_bytes : 0);

		torsh_sites_add(sites, &(struct allocation_site){
					       .process = process,
					       .stack = mapping[i].stack,
					       .blocks = pieces > 0 ? (uint64_t)pieces : 0,
					       .bytes = bytes > 0 ? (uint64_t)bytes : 0,
				       });
	}
}

void torsh_sites_collect(struct allocation_sites *sites, const struct recorded_process *process,
			 enum sites_of what)
{
	switch (what) {
	case SITES_LIVE:
		if (process->has_live)
			collect_live(sites, process);
		else
			collect_usages(sites, process, true);
		break;
	case SITES_CURRENT:
		collect_usages(sites, process, true);
		break;
	case SITES_PEAK:
		collect_usages(sites, process, false);
		break;
	case SITES_SESSION_PEAK:
		collect_joint(sites, process);
		break;
	case SITES_ALLOCATED:
		collect_totals(sites, process, false);
		break;
	case SITES_TEMPORARY:
		collect_totals(sites, process, true);
		break;
	case SITES_MAPPED:
		collect_mapped(sites, process);
		break;
	}
}

static void merge_into(struct allocation_site *to, const struct allocation_site *from)
{
	to->blocks += from->blocks;
	to->bytes += from->bytes;
	to->variance.blocks += from->variance.blocks;
	to->variance.bytes += from->variance.bytes;
	to->usable_bytes += from->usable_bytes;
	to->is_of_tensors = to->is_of_tensors || from->is_of_tensors;
	if (to->operator!= from->operator)
		to->operator= PROFILE_SEVERAL;
	if (to->module != from->module)
		to->module = PROFILE_SEVERAL;
	to->usable_is_known = to->usable_is_known && from->usable_is_known;
	to->has_times = to->has_times && from->has_times;
	if (from->first_step < to->first_step)
		to->first_step = from->first_step;
	if (from->last_step > to->last_step)
		to->last_step = from->last_step;
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
}

/* How sites are compared for merging: by the innermost depth frames, if depth is not 0. */
struct merge {
	int (*compare)(const struct allocation_site *a, const struct allocation_site *b,
		       size_t depth);
	size_t depth;
};

/* Equal ones are ordered by their index. */
static int compare_members(const void *a, const void *b, void *merge)
{
	const struct merge *by = merge;
	const struct allocation_site *x = *(struct allocation_site *const *)a,
				     *y = *(struct allocation_site *const *)b;
	int rc = by->compare(x, y, by->depth);

	return rc ? rc : (x > y) - (x < y);
}

/* Returns for each of the first n sites the first equal one. */
static struct allocation_site **find_first_equal(struct allocation_site *items, size_t n,
						 struct merge *by)
{
	struct allocation_site **sorted = torsh_need_items(NULL, 0, n + 1, sizeof(items));
	struct allocation_site **firsts = torsh_need_items(NULL, 0, n + 1, sizeof(items));
	struct allocation_site *first = NULL;
	bool is_sorted = true;

	for (size_t i = 0; i < n; i++) {
		sorted[i] = &items[i];
		is_sorted =
			is_sorted && (!i || by->compare(&items[i - 1], &items[i], by->depth) <= 0);
	}
	if (!is_sorted)
		qsort_r(sorted, n, sizeof(*sorted), compare_members, by);
	for (size_t i = 0; i < n; i++) {
		if (!first || by->compare(first, sorted[i], by->depth) != 0)
			first = sorted[i];
		firsts[sorted[i] - items] = first;
	}
	free(sorted);
	return firsts;
}

/* Merge equal ones among the first n_first into the first of them. Keeps the order. */
static void merge_equal(struct allocation_sites *sites, size_t n_first, struct merge by)
{
	struct allocation_site *items = sites->items, **firsts;
	size_t n = 0;

	if (n_first > sites->n)
		n_first = sites->n;
	firsts = find_first_equal(items, n_first, &by);
	for (size_t i = 0; i < n_first; i++) {
		if (firsts[i] == &items[i])
			continue;
		merge_into(firsts[i], &items[i]);
		free(items[i].frames);
	}
	for (size_t i = 0; i < sites->n; i++) {
		if (i >= n_first || firsts[i] == &items[i])
			items[n++] = items[i];
	}
	free(firsts);
	sites->n = n;
}

void torsh_sites_merge_equal(struct allocation_sites *sites,
			     int (*compare)(const struct allocation_site *a,
					    const struct allocation_site *b, size_t depth))
{
	merge_equal(sites, sites->n, (struct merge){.compare = compare});
}

void torsh_sites_mark_arenas(struct allocation_sites *sites, struct symbols *symbols)
{
	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site *site = &sites->items[i];

		site->is_arena = torsh_arena_is(symbols, site->process, site->stack);
	}
}

int torsh_sites_compare_kinds(const struct allocation_site *a, const struct allocation_site *b)
{
	if (a->process != b->process)
		return a->process->number < b->process->number ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return (int)a->is_arena - (int)b->is_arena;
}

static int compare_stacks(const struct allocation_site *one, const struct allocation_site *other,
			  size_t depth)
{
	const struct recorded_process *process = one->process;
	uint32_t x = one->stack, y = other->stack;
	int rc = torsh_sites_compare_kinds(one, other);

	if (rc)
		return rc;
	for (size_t i = 0; i < depth && x != y; i++) {
		const struct recorded_stack *node_x, *node_y;

		if (x >= process->n_stacks)
			x = 0;
		if (y >= process->n_stacks)
			y = 0;
		if (!x || !y)
			return !x ? -(y != 0) : 1;
		node_x = &process->stacks[x];
		node_y = &process->stacks[y];
		if (node_x->address != node_y->address)
			return node_x->address < node_y->address ? -1 : 1;
		x = node_x->parent;
		y = node_y->parent;
	}
	return 0;
}

static int compare_places(const struct allocation_site *one, const struct allocation_site *other,
			  size_t depth)
{
	int rc = torsh_sites_compare_kinds(one, other);

	(void)depth;
	if (rc)
		return rc;
	return one->stack < other->stack ? -1 : one->stack > other->stack;
}

void torsh_sites_merge_stacks(struct allocation_sites *sites, struct symbols *symbols)
{
	bool is_changed = false;

	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site *site = &sites->items[i];
		/* The view only appends to the process's table of stacks. */
		uint32_t shown = torsh_stack_view((struct recorded_process *)site->process,
						  site->stack, symbols, sites->view);

		is_changed |= shown != site->stack;
		site->stack = shown;
	}
	if (sites->depth || is_changed)
		merge_equal(
			sites, sites->n,
			(struct merge){.compare = sites->depth ? compare_stacks : compare_places,
				       .depth = sites->depth});
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_for(enum sites_order order, const struct allocation_site *a,
		       const struct allocation_site *b)
{
	switch (order) {
	case ORDER_BYTES:
		return compare_numbers(b->bytes, a->bytes);
	case ORDER_BLOCKS:
		return compare_numbers(b->blocks, a->blocks);
	case ORDER_USABLE:
		return compare_numbers(b->usable_bytes, a->usable_bytes);
	case ORDER_FIRST:
		return compare_numbers(a->first_ns, b->first_ns);
	case ORDER_LAST:
		return compare_numbers(b->last_ns, a->last_ns);
	}
	return 0;
}

static int compare_sites(const void *a, const void *b, void *order)
{
	const struct allocation_site *one = a, *other = b;
	int rc = compare_for(*(enum sites_order *)order, one, other);

	if (rc == 0)
		rc = compare_for(ORDER_BYTES, one, other);
	if (rc == 0)
		rc = compare_for(ORDER_BLOCKS, one, other);
	if (rc == 0)
		rc = compare_numbers(one->process->number, other->process->number);
	return rc ? rc : compare_numbers(one->stack, other->stack);
}

void torsh_sites_sort(struct allocation_sites *sites, enum sites_order order)
{
	if (sites->n)
		qsort_r(sites->items, sites->n, sizeof(*sites->items), compare_sites, &order);
}

/* The best numbers of sites so far, as a heap: the one that sorts last is the first. */
struct best {
	const struct allocation_site *sites;
	enum sites_order order;
	uint32_t *items;
	size_t n;
};

/* Equal ones are ordered by their number. */
static int compare_best(const void *a, const void *b, void *best)
{
	const struct best *of = best;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	enum sites_order order = of->order;
	int rc = compare_sites(&of->sites[x], &of->sites[y], &order);

	return rc ? rc : (x > y) - (x < y);
}

static bool is_after(struct best *best, size_t i, size_t k)
{
	return compare_best(&best->items[i], &best->items[k], best) > 0;
}

static void swap_best(struct best *best, size_t i, size_t k)
{
	uint32_t number = best->items[i];

	best->items[i] = best->items[k];
	best->items[k] = number;
}

static void sift_down(struct best *best, size_t i)
{
	for (size_t k; (k = 2 * i + 1) < best->n; i = k) {
		if (k + 1 < best->n && is_after(best, k + 1, k))
			k++;
		if (!is_after(best, k, i))
			return;
		swap_best(best, i, k);
	}
}

/* Find the n_first best of n sites, in order. */
static void find_best(struct best *best, size_t n)
{
	for (uint32_t i = 0; i < best->n; i++)
		best->items[i] = i;
	for (size_t i = best->n / 2; i-- > 0;)
		sift_down(best, i);
	for (uint32_t i = (uint32_t)best->n; i < n; i++) {
		if (compare_best(&i, &best->items[0], best) > 0)
			continue;
		best->items[0] = i;
		sift_down(best, 0);
	}
	qsort_r(best->items, best->n, sizeof(*best->items), compare_best, best);
}

/* Move the sites of those numbers to the front; those that stood there take their places. */
static void put_first(struct allocation_sites *sites, const struct best *best)
{
	size_t n = best->n, next = 0;
	struct allocation_site *first = torsh_need_items(NULL, 0, n, sizeof(*first));
	bool *is_best = torsh_need_items(NULL, 0, n, sizeof(*is_best));

	for (size_t i = 0; i < n; i++) {
		first[i] = sites->items[best->items[i]];
		if (best->items[i] < n)
			is_best[best->items[i]] = true;
	}
	for (size_t i = 0; i < n; i++) {
		if (best->items[i] < n)
			continue;
		while (is_best[next])
			next++;
		sites->items[best->items[i]] = sites->items[next++];
	}
	memcpy(sites->items, first, n * sizeof(*first));
	free(is_best);
	free(first);
}

void torsh_sites_sort_first(struct allocation_sites *sites, enum sites_order order, size_t n_first)
{
	struct best best = {.sites = sites->items, .order = order, .n = n_first};

	if (n_first >= sites->n / 2) {
		torsh_sites_sort(sites, order);
		return;
	}
	if (!n_first)
		return;
	best.items = torsh_need_items(NULL, 0, n_first, sizeof(*best.items));
	find_best(&best, sites->n);
	put_first(sites, &best);
	free(best.items);
}

size_t torsh_sites_put_large_first(struct allocation_sites *sites, uint64_t min_bytes)
{
	struct allocation_site *all;
	size_t n = 0, n_large;

	if (!min_bytes)
		return sites->n;
	all = torsh_need_items(NULL, 0, sites->n, sizeof(*all));

	for (size_t i = 0; i < sites->n; i++) {
		if (sites->items[i].bytes >= min_bytes)
			all[n++] = sites->items[i];
	}
	n_large = n;
	for (size_t i = 0; i < sites->n; i++) {
		if (sites->items[i].bytes < min_bytes)
			all[n++] = sites->items[i];
	}
	free(sites->items);
	sites->items = all;
	sites->n_room = n;
	return n_large;
}

/* Texts are interned: equal texts have equal pointers. */
static int compare_frame(const struct frame *a, const struct frame *b)
{
	if (a->function != b->function)
		return (uintptr_t)a->function < (uintptr_t)b->function ? -1 : 1;
	if (a->file != b->file)
		return (uintptr_t)a->file < (uintptr_t)b->file ? -1 : 1;
	if (a->module != b->module)
		return (uintptr_t)a->module < (uintptr_t)b->module ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->is_inlined != b->is_inlined)
		return a->is_inlined ? -1 : 1;
	if (a->line)
		return 0;
	return compare_numbers(a->address, b->address);
}

static int compare_named(const struct allocation_site *one, const struct allocation_site *other,
			 size_t depth)
{
	int rc = torsh_sites_compare_kinds(one, other);

	(void)depth;
	if (rc)
		return rc;
	if (one->n_frames != other->n_frames)
		return one->n_frames < other->n_frames ? -1 : 1;
	for (size_t i = 0; i < one->n_frames && !rc; i++)
		rc = compare_frame(one->frames[i], other->frames[i]);
	return rc;
}

static void name_holder(struct allocation_site *site, struct symbols *symbols, size_t depth)
{
	size_t n_room = 0;
	uint32_t stack = site->stack;

	while (stack && stack < site->process->n_stacks) {
		const struct recorded_stack *node = &site->process->stacks[stack];
		const struct frames *frames =
			torsh_symbols_frames(symbols, site->process, node->address);

		for (size_t i = 0; i < frames->n; i++) {
			if (depth && site->n_frames == depth)
				return;
			site->frames = torsh_array_reserve(site->frames, site->n_frames, &n_room,
							   sizeof(*site->frames));
			site->frames[site->n_frames++] = &frames->frames[i];
		}
		stack = node->parent;
	}
}

void torsh_sites_name(struct allocation_sites *sites, struct symbols *symbols, size_t n_first)
{
	if (n_first > sites->n)
		n_first = sites->n;
	for (size_t i = 0; i < n_first; i++) {
		if (!sites->items[i].frames)
			name_holder(&sites->items[i], symbols, sites->depth);
	}
	merge_equal(sites, n_first, (struct merge){.compare = compare_named});
}

void torsh_sites_sum(const struct allocation_sites *sites, uint64_t *blocks, uint64_t *bytes)
{
	*blocks = 0;
	*bytes = 0;
	for (size_t i = 0; i < sites->n; i++) {
		*blocks += sites->items[i].blocks;
		*bytes += sites->items[i].bytes;
	}
}

struct estimate_variance torsh_sites_variance(const struct allocation_sites *sites)
{
	struct estimate_variance sum = {0};

	for (size_t i = 0; i < sites->n; i++) {
		sum.blocks += sites->items[i].variance.blocks;
		sum.bytes += sites->items[i].variance.bytes;
	}
	return sum;
}

void torsh_sites_free(struct allocation_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->items[i].frames);
	free(sites->items);
	*sites = (struct allocation_sites){0};
}
