/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/layers.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"

#define BASE UINT64_C(0x9e3779b97f4a7c15) /* base of the polynomial hash, modulo 2^64; odd */

/*
 * The polynomial hash of every prefix, and the powers of its base: two substrings are compared by
 * one subtraction each.
 */
struct sequence {
	const uint64_t *items;
	size_t n;
	uint64_t *sums, *powers;
};

struct candidates {
	struct layer_run *items;
	size_t n, n_room;
	/* by first and last item: of several periods the shortest is first */
	struct key_index known;
};

static uint64_t mix(uint64_t item)
{
	item ^= item >> 31;
	item *= UINT64_C(0xbf58476d1ce4e5b9);
	return item ^ item >> 29;
}

uint64_t torsh_layers_hash(const uint64_t *items, size_t n)
{
	uint64_t sum = n;

	for (size_t i = 0; i < n; i++)
		sum = sum * BASE + mix(items[i]);
	return sum;
}

static void make_sequence(struct sequence *sequence, const uint64_t *items, size_t n)
{
	sequence->items = items;
	sequence->n = n;
	sequence->sums = torsh_need_items(NULL, 0, n + 1, sizeof(*sequence->sums));
	sequence->powers = torsh_need_items(NULL, 0, n + 1, sizeof(*sequence->powers));
	sequence->powers[0] = 1;
	for (size_t i = 0; i < n; i++) {
		sequence->sums[i + 1] = sequence->sums[i] * BASE + mix(items[i]);
		sequence->powers[i + 1] = sequence->powers[i] * BASE;
	}
}

static uint64_t hash_of(const struct sequence *sequence, size_t from, size_t n)
{
	return sequence->sums[from + n] - sequence->sums[from] * sequence->powers[n];
}

/* Returns how many items are equal from a and b on, a < b. */
static size_t alike_after(const struct sequence *sequence, size_t a, size_t b)
{
	size_t low = 0, high = sequence->n - b;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (hash_of(sequence, a, middle) == hash_of(sequence, b, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Returns how many items are equal before a and b. */
static size_t alike_before(const struct sequence *sequence, size_t a, size_t b)
{
	size_t low = 0, high = a;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (hash_of(sequence, a - middle, middle) == hash_of(sequence, b - middle, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void add_candidate(struct candidates *candidates, size_t start, size_t n, size_t period)
{
	uint64_t key = ((uint64_t)start << 32 | (start + n)) + 1;
	struct key_slot *slot = torsh_key_index_find(&candidates->known, key);

	if (slot->key)
		return;
	torsh_key_index_fill(&candidates->known, slot, key, 1);
	/* Period 1 is found first, so that its multiples do not count as longer periods. */
	if (period < 2)
		return;
	candidates->items = torsh_array_reserve(candidates->items, candidates->n,
						&candidates->n_room, sizeof(*candidates->items));
	candidates->items[candidates->n++] = (struct layer_run){
		.start = start, .period = period, .n_instances = n / period, .n_rest = n % period};
}

/*
 * Each run of this period contains two anchors, spaced one period apart, with equal items: only
 * anchors are compared.
 */
static void find_period(const struct sequence *sequence, size_t period,
			struct candidates *candidates)
{
	for (size_t i = 0, end = 0; i + period < sequence->n; i += period) {
		size_t before, after;

		if (i < end)
			continue;
		before = alike_before(sequence, i, i + period);
		after = alike_after(sequence, i, i + period);
		if (before + after < period)
			continue;
		add_candidate(candidates, i - before, before + after + period, period);
		end = i + after;
	}
}

static int compare_runs(const void *a, const void *b)
{
	const struct layer_run *x = a, *y = b;
	size_t n_x = x->period * x->n_instances, n_y = y->period * y->n_instances;

	if (n_x != n_y)
		return n_x > n_y ? -1 : 1;
	if (x->period != y->period)
		return x->period < y->period ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/*
 * Runs are taken from the longest to the shortest, so that an overlapping one contains the first
 * or the last item of this run.
 */
static bool is_free(const bool *is_taken, const struct layer_run *run)
{
	return !is_taken[run->start] && !is_taken[run->start + run->period * run->n_instances - 1];
}

static size_t choose_runs(const struct candidates *candidates, size_t n, layers_accept *accept,
			  void *context, struct layer_run **runs)
{
	bool *is_taken = torsh_need(calloc(n + 1, sizeof(*is_taken)));
	size_t n_runs = 0, n_room = 0;

	for (size_t i = 0; i < candidates->n; i++) {
		struct layer_run run = candidates->items[i];

		if (!is_free(is_taken, &run) || !accept(context, &run) || !is_free(is_taken, &run))
			continue;
		memset(is_taken + run.start, true, run.period * run.n_instances);
		*runs = torsh_array_reserve(*runs, n_runs, &n_room, sizeof(**runs));
		(*runs)[n_runs++] = run;
	}
	free(is_taken);
	return n_runs;
}

size_t torsh_layers_find(const uint64_t *items, size_t n, layers_accept *accept, void *context,
			 struct layer_run **runs)
{
	struct candidates candidates = {0};
	struct sequence sequence;
	size_t n_runs;

	*runs = NULL;
	n = n < LAYERS_SEQUENCE_MAX ? n : LAYERS_SEQUENCE_MAX;
	make_sequence(&sequence, items, n);
	torsh_key_index_create(&candidates.known);
	for (size_t period = 1; period <= n / 2; period++)
		find_period(&sequence, period, &candidates);
	if (candidates.n)
		qsort(candidates.items, candidates.n, sizeof(*candidates.items), compare_runs);
	n_runs = choose_runs(&candidates, n, accept, context, runs);
	torsh_key_index_destroy(&candidates.known);
	free(candidates.items);
	free(sequence.sums);
	free(sequence.powers);
	return n_runs;
}
