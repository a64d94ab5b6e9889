/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/period_steps.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/timeline/steps/repeats.h"
#include "tools/timeline/steps/tokens.h"

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

static uint64_t pause_before(const struct steps *steps, size_t i)
{
	return steps->items[i].start_ns - steps->items[i - 1].end_ns;
}

/* Returns the shortest pause that ends a burst; there are at least two steps. */
static uint64_t shortest_pause(const struct steps *steps)
{
	size_t n = steps->n - 1;
	uint64_t *pauses = torsh_need_items(NULL, 0, n, sizeof(*pauses)), shortest_ns;

	for (size_t i = 0; i < n; i++)
		pauses[i] = pause_before(steps, i + 1);
	qsort(pauses, n, sizeof(*pauses), compare_numbers);
	shortest_ns = pauses[n / 4] * BURST_QUARTILES;
	free(pauses);
	return shortest_ns > BURST_PAUSE_NS ? shortest_ns : BURST_PAUSE_NS;
}

static void find_bursts(struct steps *steps)
{
	uint64_t shortest_ns = shortest_pause(steps);
	uint32_t burst = 0;

	for (size_t i = 1; i < steps->n; i++) {
		burst += pause_before(steps, i) >= shortest_ns;
		steps->items[i].burst = burst;
	}
	steps->n_bursts = burst + 1;
}

void torsh_period_steps_make(const struct op_sequences *sequences,
			     const struct recorded_process *process, struct steps *steps)
{
	struct repeats repeats;
	size_t n;
	struct op_place *places = torsh_op_sequences_take(sequences, &n);

	torsh_repeats_find(&repeats, places, n);
	for (size_t i = 0; i < repeats.n; i++)
		torsh_steps_add(steps, i, repeats.items[i].start_ns, repeats.items[i].end_ns);
	if (repeats.n) {
		torsh_tokens_find(steps->items, repeats.items, steps->n, places, process);
		find_bursts(steps);
		steps->certainty = repeats.certainty;
	}
	free(repeats.items);
	free(places);
}

/* ---- regularity ------------------------------------------------------------------------------ */

/* Count the operators of each step; they are in the order of time. */
static uint64_t *count_operators(const struct steps *steps, const struct op_place *places, size_t n)
{
	uint64_t *counts = torsh_need_items(NULL, 0, steps->n, sizeof(*counts));

	for (size_t i = 0; i < n; i++) {
		size_t step = torsh_steps_at(steps, places[i].start_ns);

		if (step != STEP_NONE && !torsh_op_place_is_module(&places[i]))
			counts[step]++;
	}
	return counts;
}

double torsh_period_steps_regularity(const struct op_sequences *sequences,
				     const struct steps *steps)
{
	size_t n, n_steps = steps->n > 2 ? steps->n - 2 : 0, n_regular = 0;
	struct op_place *places;
	uint64_t *counts, median;

	if (!n_steps)
		return 1;
	places = torsh_op_sequences_take(sequences, &n);
	counts = count_operators(steps, places, n);
	qsort(counts + 1, n_steps, sizeof(*counts), compare_numbers);
	median = counts[1 + n_steps / 2];
	for (size_t i = 1; i <= n_steps; i++) {
		uint64_t off = counts[i] > median ? counts[i] - median : median - counts[i];

		n_regular += off * 20 <= median;
	}
	free(counts);
	free(places);
	return (double)n_regular / (double)n_steps;
}
