/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/step_durations.h"

#include <stdlib.h>

#include "tools/base/die.h"

static uint64_t duration_of(const struct step *step)
{
	return step->end_ns - step->start_ns;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the duration that `percent` of the n sorted durations do not exceed; n > 0. */
static uint64_t percentile(const uint64_t *sorted, size_t n, size_t percent)
{
	return sorted[(n * percent + 99) / 100 - 1];
}

/* Returns the steps of a process by that rule; n is 0 if it has none. */
static const struct steps *steps_of(const struct prepass *prepass, size_t i, enum step_rule rule)
{
	static const struct steps none;
	const struct steps *steps = &prepass->items[i].steps;

	return steps->rule == rule ? steps : &none;
}

static void collect(const struct prepass *prepass, struct step_durations *durations, uint64_t *all)
{
	size_t n = 0;

	for (size_t i = 0; i < prepass->n; i++) {
		const struct steps *steps = steps_of(prepass, i, durations->rule);

		for (size_t k = 0; k < steps->n; k++) {
			all[n] = duration_of(&steps->items[k]);
			if (all[n] > durations->longest_ns) {
				durations->longest_ns = all[n];
				durations->longest_number = steps->items[k].number;
			}
			n++;
		}
	}
}

static size_t count_slow_first(const struct steps *steps, uint64_t median_ns)
{
	size_t n = 0;

	while (n < steps->n && duration_of(&steps->items[n]) > STEPS_SLOW_MEDIANS * median_ns)
		n++;
	return n;
}

struct step_durations torsh_step_durations_find(const struct prepass *prepass)
{
	struct step_durations durations = {.rule = torsh_prepass_step_rule(prepass)};
	uint64_t *all;

	for (size_t i = 0; i < prepass->n; i++)
		durations.n += steps_of(prepass, i, durations.rule)->n;
	if (!durations.n)
		return durations;
	all = torsh_need_items(NULL, 0, durations.n, sizeof(*all));
	collect(prepass, &durations, all);
	qsort(all, durations.n, sizeof(*all), compare_numbers);
	durations.median_ns = all[durations.n / 2];
	durations.p90_ns = percentile(all, durations.n, 90);
	durations.p99_ns = percentile(all, durations.n, 99);
	free(all);
	for (size_t i = 0; i < prepass->n; i++) {
		size_t n =
			count_slow_first(steps_of(prepass, i, durations.rule), durations.median_ns);

		durations.n_slow_first = n > durations.n_slow_first ? n : durations.n_slow_first;
	}
	return durations;
}
