/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/step_pace.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* Of the last steps; the lower one of two. */
static uint64_t median(const struct step_pace *pace)
{
	size_t n = pace->n < STEP_PACE_STEPS ? (size_t)pace->n : STEP_PACE_STEPS;
	uint64_t sorted[STEP_PACE_STEPS];

	memcpy(sorted, pace->ns, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted[(n - 1) / 2];
}

static bool is_slow(const struct step_pace *pace, uint64_t ns, uint64_t median_ns)
{
	return (double)ns * 100.0 >= (double)median_ns * pace->slow_percent;
}

void torsh_step_pace_take(struct step_pace *pace, uint64_t at_ns)
{
	uint64_t ns = at_ns - pace->begin_ns;

	if (!pace->begin_ns || at_ns < pace->begin_ns) {
		pace->begin_ns = at_ns;
		return;
	}
	if (pace->slow_percent && !pace->has_slow && pace->n >= STEP_PACE_FEWEST) {
		uint64_t median_ns = median(pace);

		pace->has_slow = is_slow(pace, ns, median_ns);
		pace->slow = (struct slow_step){.ordinal = pace->n,
						.begin_ns = pace->begin_ns,
						.ns = ns,
						.median_ns = median_ns};
	}
	pace->ns[pace->n++ % STEP_PACE_STEPS] = ns;
	pace->begin_ns = at_ns;
}
