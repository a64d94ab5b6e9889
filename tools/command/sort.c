/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/sort.h"

#include <stdlib.h>

#include "tools/command/arguments.h"

#define KEYS_MAX 16

const struct sort_key *torsh_sort_key(struct argp_state *state, const struct sort_key *keys,
				      const char *text)
{
	const char *names[KEYS_MAX];
	size_t n = 0;

	for (; n < KEYS_MAX && keys[n].name; n++)
		names[n] = keys[n].name;
	return &keys[torsh_argument_choice(state, "sort", names, n, text)];
}

struct order {
	const struct sort_key *key;
	int (*compare)(const void *a, const void *b);
};

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	uint64_t x, y;

	if (!order->key->weight)
		return order->compare(a, b);
	x = order->key->weight(a);
	y = order->key->weight(b);
	return x != y ? (x < y) - (x > y) : order->compare(a, b);
}

void torsh_sort_rows(void *rows, size_t n, size_t bytes, const struct sort_key *key,
		     int (*compare)(const void *a, const void *b))
{
	struct order order = {.key = key, .compare = compare};

	/* qsort_r must not get NULL, even for no rows. */
	if (n)
		qsort_r(rows, n, bytes, compare_rows, &order);
}
