/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ranks/kineto/breakdown.h"

void torsh_intervals_add(struct intervals *all, double start, double end)
{
	struct interval *last = all->n ? &all->items[all->n - 1] : NULL;

	if (last && start <= all->last_end) {
		if (end > last->end)
			last->end = end;
		if (end > all->last_end)
			all->last_end = end;
		return;
	}
	all->items = torsh_array_reserve(all->items, all->n, &all->room, sizeof(*all->items));
	/* Rounding may leave an end before its start: then the furthest end is an earlier one. */
	if (!all->n || end > all->last_end)
		all->last_end = end;
	all->items[all->n++] = (struct interval){start, end};
}

double torsh_intervals_sum(const struct intervals *all)
{
	double sum = 0;

	for (size_t i = 0; i < all->n; i++)
		sum += all->items[i].end - all->items[i].start;
	return sum;
}

double torsh_intervals_within(const struct intervals *all, double start, double end, size_t *next)
{
	double sum = 0;

	while (*next < all->n && all->items[*next].end <= start)
		++*next;
	for (size_t i = *next; i < all->n && all->items[i].start < end; i++) {
		double from = all->items[i].start > start ? all->items[i].start : start,
		       to = all->items[i].end < end ? all->items[i].end : end;

		sum += to > from ? to - from : 0;
	}
	return sum;
}

/* A set's interval begins or ends. */
struct change {
	double at;
	int value;
};

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

void torsh_intervals_overlap(const struct intervals *sets, size_t n, double *sums)
{
	struct change *changes;
	size_t n_changes = 0, k = 0;
	int running = 0;

	for (size_t i = 0; i < n; i++)
		n_changes += 2 * sets[i].n;
	changes = torsh_need_items(NULL, 0, n_changes, sizeof(*changes));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < sets[i].n; j++) {
			changes[k++] = (struct change){sets[i].items[j].start, 1 << i};
			changes[k++] = (struct change){sets[i].items[j].end, -(1 << i)};
		}
	}
	qsort(changes, n_changes, sizeof(*changes), compare_changes);
	for (size_t i = 0; i + 1 < n_changes; i++) {
		running += changes[i].value;
		if (running > 0 && running < 1 << n)
			sums[running] += changes[i + 1].at - changes[i].at;
	}
	free(changes);
}
