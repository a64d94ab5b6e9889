/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/merge.h"

#include <stdlib.h>

#include "tools/base/memory.h"

/* Intakes with events at hand: a binary heap by the stamp of the first. */
struct front {
	uint64_t stamp;
	struct intake *intake;
};

struct merge {
	struct tally *tally;
	struct intake_tables tables;
	struct front *fronts;
	uint32_t n_fronts;
	uint64_t limit;
};

static void sink(struct merge *merge, uint32_t i)
{
	struct front *fronts = merge->fronts, moved = fronts[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= merge->n_fronts)
			break;
		if (child + 1 < merge->n_fronts && fronts[child + 1].stamp < fronts[child].stamp)
			child++;
		if (fronts[child].stamp >= moved.stamp)
			break;
		fronts[i] = fronts[child];
		i = child;
	}
	fronts[i] = moved;
}

/* Are there events at hand? If not, the intake's bound joins the limit. */
static int has_events(struct merge *merge, struct intake *intake)
{
	uint64_t bound;

	if (intake->first < intake->n_events || torsh_intake_decode(intake, &merge->tables))
		return 1;
	bound = torsh_intake_bound(intake);
	if (bound < merge->limit)
		merge->limit = bound;
	return 0;
}

static void collect_fronts(struct merge *merge, struct intake *const *intakes, uint32_t n_intakes)
{
	for (uint32_t i = 0; i < n_intakes; i++) {
		if (has_events(merge, intakes[i]))
			merge->fronts[merge->n_fronts++] = (struct front){
				.stamp = intakes[i]->events[intakes[i]->first].stamp,
				.intake = intakes[i],
			};
	}
	for (uint32_t i = merge->n_fronts / 2; i-- > 0;)
		sink(merge, i);
}

/* Up to where the first intake may be folded before another one's turn comes. */
static uint64_t run_end(const struct merge *merge)
{
	uint64_t end = merge->limit;

	for (uint32_t i = 1; i < 3 && i < merge->n_fronts; i++) {
		if (merge->fronts[i].stamp < end)
			end = merge->fronts[i].stamp;
	}
	return end;
}

static uint64_t fold_run(struct tally *tally, struct intake *intake, uint64_t end)
{
	uint32_t i = intake->first;

	for (; i < intake->n_events && intake->events[i].stamp <= end && !tally->is_out_of_memory; i++)
		torsh_tally_fold(tally, intake, i);
	i -= intake->first;
	intake->first += i;
	return i;
}

uint64_t torsh_merge_fold(struct tally *tally, struct intake *const *intakes, uint32_t n_intakes, uint64_t limit,
			  uint64_t budget)
{
	struct front *fronts = torsh_memory_new(n_intakes + 1, sizeof(*fronts));
	struct merge merge = {
		.tally = tally,
		.tables = {.code = &tally->code, .stacks = &tally->stacks, .heap = &tally->heap},
		.fronts = fronts,
		.limit = limit,
	};
	uint64_t n_folded = 0;

	collect_fronts(&merge, intakes, n_intakes);
	while (merge.n_fronts && n_folded < budget && fronts[0].stamp <= merge.limit && !tally->is_out_of_memory) {
		struct intake *intake = fronts[0].intake;

		n_folded += fold_run(tally, intake, run_end(&merge));
		if (has_events(&merge, intake))
			fronts[0].stamp = intake->events[intake->first].stamp;
		else
			fronts[0] = fronts[--merge.n_fronts];
		sink(&merge, 0);
	}
	free(fronts);
	return n_folded;
}
