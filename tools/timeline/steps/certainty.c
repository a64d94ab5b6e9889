/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/certainty.h"

#include <stdlib.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"

#define PAUSES_MAX 65536u /* pauses within steps whose median is taken */
/* Percentages of the operators from the first step on that regular steps cover at least. */
#define ONE_PERCENT 50u /* all steps of one sequence */
#define TWO_PERCENT 75u /* those of the two most frequent sequences */
#define SHORT_PERCENT 95u /* all steps of one sequence, where they are short */
#define SHORT_OPERATORS 4u /* steps of fewer are short: by chance there are many */
#define MODULES_PERCENT 50u /* calls of a module, equal or not */
#define OPERATORS_MIN 12u /* in steps, without modules */
#define OPERATORS_SURE 8u /* of a step, without modules: what has fewer may be a layer */

/* Steps of one sequence. */
struct sequence_class {
	size_t n, n_places;
};

struct classes {
	struct sequence_class *items;
	size_t *of; /* class by step */
	size_t n;
};

static void classify(struct classes *classes, const struct repeats *repeats,
		     const struct symbols *symbols)
{
	struct hash_map numbers = {0};

	*classes = (struct classes){
		.items = torsh_need_items(NULL, 0, repeats->n, sizeof(*classes->items)),
		.of = torsh_need_items(NULL, 0, repeats->n, sizeof(*classes->of)),
	};
	for (size_t i = 0; i < repeats->n; i++) {
		const struct repeat *repeat = &repeats->items[i];
		size_t n = repeat->end - repeat->first;
		uint64_t hash = torsh_symbols_hash(symbols->items + repeat->first, n);
		struct sequence_class *of;

		classes->of[i] =
			torsh_hash_map_put(&numbers, &hash, sizeof(hash), numbers.n)->value;
		of = &classes->items[classes->of[i]];
		of->n++;
		of->n_places += n;
	}
	classes->n = numbers.n;
	torsh_hash_map_free(&numbers);
}

static void free_classes(struct classes *classes)
{
	free(classes->items);
	free(classes->of);
}

/* Returns the places of the n_most classes that cover most; those of fewer steps don't count. */
static size_t sum_largest(const struct classes *classes, bool is_two)
{
	size_t first = 0, second = 0;

	for (size_t i = 0; i < classes->n; i++) {
		size_t n = classes->items[i].n >= REPEATS_MIN ? classes->items[i].n_places : 0;

		if (n > first) {
			second = first;
			first = n;
		} else if (n > second) {
			second = n;
		}
	}
	return first + (is_two ? second : 0);
}

static size_t count_covered(const struct repeats *repeats)
{
	size_t n = 0;

	for (size_t i = 0; i < repeats->n; i++)
		n += repeats->items[i].end - repeats->items[i].first;
	return n;
}

/* Returns whether the steps cover enough of the n places from the first one on. */
static bool is_regular(const struct repeats *repeats, const struct classes *classes, size_t n,
		       bool is_of_modules)
{
	size_t covered = count_covered(repeats);
	bool is_short = covered < repeats->n * SHORT_OPERATORS;

	if (is_of_modules)
		return covered * 100 >= n * MODULES_PERCENT;
	if (covered < OPERATORS_MIN)
		return false;
	if (is_short)
		return sum_largest(classes, false) * 100 >= n * SHORT_PERCENT;
	return sum_largest(classes, false) * 100 >= n * ONE_PERCENT ||
	       sum_largest(classes, true) * 100 >= n * TWO_PERCENT;
}

/* ---- the measure ----------------------------------------------------------------------------- */

static uint64_t time_of(const struct symbols *symbols, size_t from, size_t to)
{
	uint64_t ns = 0;

	for (size_t i = from; i < to; i++) {
		if (!torsh_op_place_is_module(&symbols->places[i]))
			ns += symbols->places[i].end_ns - symbols->places[i].start_ns;
	}
	return ns;
}

/* Returns the share of the operators' time from the first step on that lies in equal steps. */
static double share_of_equal(const struct repeats *repeats, const struct symbols *symbols)
{
	uint64_t all_ns = time_of(symbols, repeats->items[0].first, symbols->n), equal_ns = 0;

	for (size_t i = 0; i < repeats->n; i++) {
		if (repeats->items[i].is_equal)
			equal_ns +=
				time_of(symbols, repeats->items[i].first, repeats->items[i].end);
	}
	return all_ns ? (double)equal_ns / (double)all_ns : 0;
}

static int compare_pauses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the median pause between the operators of the steps; false: each has one operator. */
static bool median_pause(const struct repeats *repeats, const struct symbols *symbols,
			 uint64_t *median)
{
	uint64_t *pauses = torsh_need_items(NULL, 0, PAUSES_MAX, sizeof(*pauses));
	size_t n = 0;

	for (size_t i = 0; i < repeats->n; i++) {
		for (size_t at = repeats->items[i].first + 1;
		     at < repeats->items[i].end && n < PAUSES_MAX; at++)
			pauses[n++] = symbols->places[at].pause_ns;
	}
	if (n) {
		qsort(pauses, n, sizeof(*pauses), compare_pauses);
		*median = pauses[n / 2];
	}
	free(pauses);
	return n;
}

/* Returns the share of equal steps before which the pause is longer than those within steps. */
static double share_of_pauses(const struct repeats *repeats, const struct symbols *symbols)
{
	size_t n = 0, n_longer = 0;
	uint64_t median;

	if (!median_pause(repeats, symbols, &median))
		return 1;
	for (size_t i = 1; i < repeats->n; i++) {
		if (!repeats->items[i].is_equal)
			continue;
		n++;
		n_longer += symbols->places[repeats->items[i].first].pause_ns > median;
	}
	return n ? (double)n_longer / (double)n : 0;
}

/* Returns how many operators a step has on average, as a share of those that make it sure. */
static double share_of_operators(const struct repeats *repeats)
{
	double n = (double)count_covered(repeats) / (double)repeats->n;

	return n < OPERATORS_SURE ? n / OPERATORS_SURE : 1;
}

bool torsh_certainty_find(struct repeats *repeats, const struct symbols *symbols,
			  bool is_of_modules)
{
	struct classes classes;
	bool is_enough;

	if (repeats->n < REPEATS_MIN)
		return false;
	classify(&classes, repeats, symbols);
	for (size_t i = 0; i < repeats->n; i++)
		repeats->items[i].is_equal = classes.items[classes.of[i]].n > 1;
	is_enough =
		is_regular(repeats, &classes, symbols->n - repeats->items[0].first, is_of_modules);
	free_classes(&classes);
	if (!is_enough)
		return false;
	repeats->certainty = share_of_equal(repeats, symbols);
	if (!is_of_modules)
		repeats->certainty *=
			share_of_pauses(repeats, symbols) * share_of_operators(repeats);
	return true;
}
