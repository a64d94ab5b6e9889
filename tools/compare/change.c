/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/compare/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"
#include "tools/compare/spread.h"

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t torsh_change_median(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_numbers);
	return values[n / 2];
}

static uint64_t median_of(const uint64_t *values, size_t n)
{
	uint64_t *sorted = torsh_memory_new(n, sizeof(*sorted)), median;

	memcpy(sorted, values, n * sizeof(*sorted));
	median = torsh_change_median(sorted, n);
	free(sorted);
	return median;
}

static double least_percent(const struct change_rules *rules, enum change_unit unit,
			    size_t n_before, size_t n_after)
{
	if (rules->has_min_percent)
		return rules->min_percent;
	if (unit != CHANGE_NS)
		return CHANGE_PERCENT;
	return n_before >= CHANGE_RUNS && n_after >= CHANGE_RUNS ? CHANGE_TIME_RUNS_PERCENT
								 : CHANGE_TIME_PERCENT;
}

struct change torsh_change_judge(const uint64_t *values, size_t n_before, size_t n_after,
				 enum change_unit unit, const struct change_rules *rules,
				 uint64_t least)
{
	struct change change = {.is_known = true, .has_spread = n_before > 1 || n_after > 1};
	double percent = least_percent(rules, unit, n_before, n_after);
	uint64_t difference, larger;

	change.before = median_of(values, n_before);
	change.after = median_of(values + n_before, n_after);
	if (change.has_spread)
		change.spread = torsh_spread(values, n_before, n_after,
					     rules->n_figures ? rules->n_figures : 1);
	larger = change.after > change.before ? change.after : change.before;
	difference = larger - (change.after > change.before ? change.before : change.after);
	if (unit == CHANGE_BYTES && least + 1 < rules->min_bytes)
		least = rules->min_bytes - 1;
	change.is_change = difference > change.spread && difference > least &&
			   (double)difference > percent / 100 * (double)change.before;
	return change;
}

double torsh_change_percent(const struct change *change)
{
	if (change->before)
		return 100 * ((double)change->after - (double)change->before) /
		       (double)change->before;
	return change->after ? INFINITY : 0;
}
