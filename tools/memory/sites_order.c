/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The order of sites. */
#include "tools/memory/allocation_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static uint64_t lost_bytes(const struct allocation_site *site)
{
	return site->bytes - site->classes.bytes[BLOCKS_POSSIBLE] -
	       site->classes.bytes[BLOCKS_REACHABLE];
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
	case ORDER_LOST:
		return compare_numbers(lost_bytes(b), lost_bytes(a));
	}
	return 0;
}

int torsh_sites_compare_order(enum sites_order order, const struct allocation_site *one,
			      const struct allocation_site *other)
{
	int rc = compare_for(order, one, other);

	if (rc == 0)
		rc = compare_for(ORDER_BYTES, one, other);
	if (rc == 0)
		rc = compare_for(ORDER_BLOCKS, one, other);
	if (rc == 0)
		rc = compare_numbers(one->process->number, other->process->number);
	return rc ? rc : compare_numbers(one->stack, other->stack);
}

static int compare_sites(const void *a, const void *b, void *order)
{
	return torsh_sites_compare_order(*(enum sites_order *)order, a, b);
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
