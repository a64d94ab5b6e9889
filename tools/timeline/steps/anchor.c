/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/anchor.h"

#include <stdlib.h>
#include <xxhash.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"

#define CANDIDATES_MAX 64u
#define CANDIDATES_OF_COUNT 2u /* symbols that occur equally often: mostly in the same segments */

/* ---- symbols --------------------------------------------------------------------------------- */

void torsh_symbols_make(struct symbols *symbols, const struct op_place *places, size_t n)
{
	uint32_t highest = 0, *numbers;

	*symbols = (struct symbols){.places = places, .n = n};
	for (size_t i = 0; i < n; i++)
		highest = places[i].symbol > highest ? places[i].symbol : highest;
	/* The number of a symbol plus 1; 0: none yet. */
	numbers = torsh_need_items(NULL, 0, (size_t)highest + 1, sizeof(*numbers));
	symbols->items = torsh_need_items(NULL, 0, n, sizeof(*symbols->items));
	for (size_t i = 0; i < n; i++) {
		uint32_t *number = &numbers[places[i].symbol];

		if (!*number)
			*number = (uint32_t)++symbols->n_different;
		symbols->items[i] = *number - 1;
	}
	free(numbers);
	symbols->counts = torsh_need_items(NULL, 0, symbols->n_different, sizeof(*symbols->counts));
	symbols->is_module =
		torsh_need_items(NULL, 0, symbols->n_different, sizeof(*symbols->is_module));
	for (size_t i = 0; i < n; i++) {
		symbols->counts[symbols->items[i]]++;
		symbols->is_module[symbols->items[i]] = torsh_op_place_is_module(&places[i]);
	}
}

void torsh_symbols_free(struct symbols *symbols)
{
	free(symbols->items);
	free(symbols->counts);
	free(symbols->is_module);
	*symbols = (struct symbols){0};
}

uint64_t torsh_symbols_hash(const uint32_t *symbols, size_t n)
{
	return XXH64(symbols, n * sizeof(*symbols), 0);
}

/* ---- segments -------------------------------------------------------------------------------- */

size_t *torsh_anchor_places(const struct symbols *symbols, uint32_t anchor, size_t *n)
{
	size_t *places = torsh_need_items(NULL, 0, symbols->counts[anchor], sizeof(*places));

	*n = 0;
	for (size_t i = 0; i < symbols->n; i++) {
		if (symbols->items[i] == anchor)
			places[(*n)++] = i;
	}
	return places;
}

static size_t end_of(const struct symbols *symbols, const size_t *anchors, size_t n, size_t i)
{
	return i + 1 < n ? anchors[i + 1] : symbols->n;
}

/* Returns what the description by an anchor takes, or SIZE_MAX once it takes n_most. */
static size_t cost_of(const struct symbols *symbols, uint32_t anchor, size_t n_most)
{
	struct hash_map seen = {0};
	size_t n, *anchors = torsh_anchor_places(symbols, anchor, &n);
	size_t cost = anchors[0] + n / 2;

	for (size_t i = 0; i < n && cost < n_most; i++) {
		size_t length = end_of(symbols, anchors, n, i) - anchors[i];
		uint64_t hash = torsh_symbols_hash(symbols->items + anchors[i], length);

		if (torsh_hash_map_find(&seen, &hash, sizeof(hash)))
			continue;
		torsh_hash_map_put(&seen, &hash, sizeof(hash), 0);
		cost += length;
	}
	torsh_hash_map_free(&seen);
	free(anchors);
	return cost < n_most ? cost : SIZE_MAX;
}

struct segment torsh_anchor_segment(const struct symbols *symbols, const size_t *anchors, size_t n)
{
	struct hash_map numbers = {0};
	size_t *covered = torsh_need_items(NULL, 0, n, sizeof(*covered)), most = 0;
	struct segment best = {.first = anchors[0]};

	for (size_t i = 0; i < n; i++) {
		size_t length = end_of(symbols, anchors, n, i) - anchors[i], number;
		uint64_t hash = torsh_symbols_hash(symbols->items + anchors[i], length);

		number = torsh_hash_map_put(&numbers, &hash, sizeof(hash), numbers.n)->value;
		covered[number] += length;
		if (covered[number] <= most)
			continue;
		most = covered[number];
		best = (struct segment){.first = anchors[i], .n = length};
	}
	torsh_hash_map_free(&numbers);
	free(covered);
	return best;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* A symbol that may be the anchor. */
struct candidate {
	size_t count;
	uint32_t symbol; /* they are numbered as they occur first */
};

/* The rarest first, as they have the longest segments; of equal ones the first of the sequence. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

static struct candidate *list_candidates(const struct symbols *symbols, bool is_of_modules,
					 size_t *n)
{
	struct candidate *candidates =
		torsh_need_items(NULL, 0, symbols->n_different, sizeof(*candidates));

	*n = 0;
	for (size_t i = 0; i < symbols->n_different; i++) {
		if (symbols->counts[i] >= REPEATS_MIN && (symbols->is_module[i] || !is_of_modules))
			candidates[(*n)++] = (struct candidate){.count = symbols->counts[i],
								.symbol = (uint32_t)i};
	}
	if (*n)
		qsort(candidates, *n, sizeof(*candidates), compare_candidates);
	return candidates;
}

uint32_t torsh_anchor_choose(const struct symbols *symbols, bool is_of_modules)
{
	size_t n, n_tried = 0, n_of_count = 0;
	/* What takes more describes nothing; but calls of a module need not equal each other. */
	size_t least = is_of_modules ? SIZE_MAX : symbols->n + 1;
	struct candidate *candidates = list_candidates(symbols, is_of_modules, &n);
	uint32_t best = ANCHOR_NONE;

	for (size_t i = 0; i < n && n_tried < CANDIDATES_MAX; i++) {
		bool is_of_last = i && candidates[i].count == candidates[i - 1].count;
		size_t cost;

		n_of_count = is_of_last ? n_of_count + 1 : 0;
		if (n_of_count >= CANDIDATES_OF_COUNT)
			continue;
		n_tried++;
		cost = cost_of(symbols, candidates[i].symbol, least);
		if (cost == SIZE_MAX)
			continue;
		least = cost;
		best = candidates[i].symbol;
	}
	free(candidates);
	return best;
}
