/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/busy.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	struct busy_interval *last = busy->n ? &busy->intervals[busy->n - 1] : NULL;

	if (end_ns <= begin_ns)
		return;
	/* An interval that continues or overlaps the last one extends it. */
	if (last && begin_ns >= last->begin_ns && begin_ns <= last->end_ns) {
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return;
	}
	busy->intervals = torsh_array_reserve(busy->intervals, busy->n, &busy->n_room,
					      sizeof(*busy->intervals));
	busy->intervals[busy->n++] = (struct busy_interval){.begin_ns = begin_ns, .end_ns = end_ns};
}

static int compare_spans(const void *a, const void *b)
{
	const struct busy_interval *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

void torsh_busy_settle(struct busy *busy)
{
	size_t n = busy->n;

	if (!n)
		return;
	qsort(busy->intervals, n, sizeof(*busy->intervals), compare_spans);
	/*
	 * Adding them again in order joins all that touch: the write position never passes the
	 * read position.
	 */
	busy->n = 0;
	for (size_t i = 0; i < n; i++)
		torsh_busy_add(busy, busy->intervals[i].begin_ns, busy->intervals[i].end_ns);
}

uint64_t torsh_busy_within(const struct busy *busy, uint64_t from_ns, uint64_t to_ns, size_t *next)
{
	uint64_t busy_ns = 0;

	while (*next < busy->n && busy->intervals[*next].end_ns <= from_ns)
		++*next;
	for (size_t i = *next; i < busy->n && busy->intervals[i].begin_ns < to_ns; i++) {
		uint64_t begin_ns = busy->intervals[i].begin_ns > from_ns
					    ? busy->intervals[i].begin_ns
					    : from_ns;
		uint64_t end_ns =
			busy->intervals[i].end_ns < to_ns ? busy->intervals[i].end_ns : to_ns;

		busy_ns += end_ns - begin_ns;
	}
	return busy_ns;
}

void torsh_busy_free(struct busy *busy)
{
	free(busy->intervals);
	*busy = (struct busy){0};
}
