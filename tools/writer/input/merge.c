/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/merge.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/memory.h"

/* Ring consumers with decoded events: a binary heap ordered by the stamp of the first event. */
struct front {
	uint64_t stamp;
	struct ring_consumer *consumer;
};

struct merge {
	struct process_state *state;
	struct consumer_tables tables;
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

/* Returns true if the ring consumer has a decoded event; if not, its bound lowers the limit. */
static bool has_events(struct merge *merge, struct ring_consumer *consumer)
{
	uint64_t bound;

	if (consumer->first < consumer->n_events ||
	    torsh_ring_consumer_decode(consumer, &merge->tables))
		return true;
	bound = torsh_ring_consumer_bound(consumer);
	if (bound < merge->limit)
		merge->limit = bound;
	return false;
}

static void collect_fronts(struct merge *merge, struct ring_consumer *const *consumers,
			   uint32_t n_consumers)
{
	for (uint32_t i = 0; i < n_consumers; i++) {
		if (has_events(merge, consumers[i]))
			merge->fronts[merge->n_fronts++] = (struct front){
				.stamp = consumers[i]->events[consumers[i]->first].stamp,
				.consumer = consumers[i],
			};
	}
	for (uint32_t i = merge->n_fronts / 2; i-- > 0;)
		sink(merge, i);
}

/*
 * The stamp up to which the first ring consumer can be folded before another one has an older
 * event.
 */
static uint64_t run_end(const struct merge *merge)
{
	uint64_t end = merge->limit;

	for (uint32_t i = 1; i < 3 && i < merge->n_fronts; i++) {
		if (merge->fronts[i].stamp < end)
			end = merge->fronts[i].stamp;
	}
	return end;
}

static uint64_t fold_run(struct process_state *state, struct ring_consumer *consumer, uint64_t end)
{
	uint32_t i = consumer->first;

	for (;
	     i < consumer->n_events && consumer->events[i].stamp <= end && !state->is_out_of_memory;
	     i++)
		torsh_process_state_fold(state, consumer, i);
	i -= consumer->first;
	consumer->first += i;
	return i;
}

uint64_t torsh_merge_fold(struct process_state *state, struct ring_consumer *const *consumers,
			  uint32_t n_consumers, uint64_t limit, uint64_t budget)
{
	struct front *fronts = torsh_memory_new(n_consumers + 1, sizeof(*fronts));
	struct merge merge = {
		.state = state,
		.tables = {.code = &state->code,
			   .stacks = &state->tables->stacks,
			   .heap = &state->heap},
		.fronts = fronts,
		.limit = limit,
	};
	uint64_t n_folded = 0;

	collect_fronts(&merge, consumers, n_consumers);
	while (merge.n_fronts && n_folded < budget && fronts[0].stamp <= merge.limit &&
	       !state->is_out_of_memory) {
		struct ring_consumer *consumer = fronts[0].consumer;

		n_folded += fold_run(state, consumer, run_end(&merge));
		if (has_events(&merge, consumer))
			fronts[0].stamp = consumer->events[consumer->first].stamp;
		else
			fronts[0] = fronts[--merge.n_fronts];
		sink(&merge, 0);
	}
	free(fronts);
	return n_folded;
}
