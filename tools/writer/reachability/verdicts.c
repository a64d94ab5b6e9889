/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/verdicts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define AHEAD 16u /* blocks whose pointers are fetched before they are followed */

struct marking {
	const struct pointer_graph *graph;
	uint8_t *verdicts;
	uint32_t *parents;
	uint32_t *frontier; /* blocks with a verdict, in the order in which they got it */
	size_t n, capacity;
	size_t n_followed; /* those before have had their pointers followed */
};

/* The first of the pointers that lead to a block is on a shortest way. */
static void mark(struct marking *marking, uint32_t block, enum verdict verdict, size_t parent)
{
	if (marking->verdicts[block])
		return;
	marking->verdicts[block] = (uint8_t)verdict;
	marking->parents[block] = (uint32_t)parent;
	marking->frontier = torsh_array_reserve(marking->frontier, marking->n, &marking->capacity,
						sizeof(*marking->frontier));
	marking->frontier[marking->n++] = block;
}

/* Mark what the roots' pointers lead to; with_interior: also what they lead to the inside of. */
static void follow_roots(struct marking *marking, bool with_interior, enum verdict verdict)
{
	const struct pointer *pointers = marking->graph->pointers;

	for (size_t i = 0; i < marking->graph->n_roots; i++) {
		if (with_interior || !pointers[i].is_interior)
			mark(marking, pointers[i].block, verdict, i + 1);
	}
}

/* Likewise for a block's pointers. */
static void follow(struct marking *marking, uint32_t block, bool with_interior,
		   enum verdict verdict)
{
	const struct pointer_graph *graph = marking->graph;

	for (size_t i = graph->firsts[block]; i < graph->firsts[block + 1]; i++) {
		if (with_interior || !graph->pointers[i].is_interior)
			mark(marking, graph->pointers[i].block, verdict,
			     graph->n_roots + 1 + block);
	}
}

/* Mark all that the frontier leads to. */
static void flood(struct marking *marking, bool with_interior, enum verdict verdict)
{
	const uint32_t *firsts = marking->graph->firsts;

	while (marking->n_followed < marking->n) {
		uint32_t block = marking->frontier[marking->n_followed++];
		size_t ahead = marking->n_followed + AHEAD;

		if (ahead < marking->n)
			__builtin_prefetch(&firsts[marking->frontier[ahead]]);
		follow(marking, block, with_interior, verdict);
	}
}

/* What reachable blocks and roots lead to the inside of, and what that leads to. */
static void flood_possible(struct marking *marking)
{
	const struct pointer_graph *graph = marking->graph;

	follow_roots(marking, true, VERDICT_POSSIBLE);
	for (uint32_t i = 0; i < graph->index->n; i++) {
		if (marking->verdicts[i] == VERDICT_REACHABLE)
			follow(marking, i, true, VERDICT_POSSIBLE);
	}
	flood(marking, true, VERDICT_POSSIBLE);
}

/* Blocks that no other lost block points to are lost, and what they lead to is lost with them. */
static void divide_lost(struct marking *marking)
{
	const struct pointer_graph *graph = marking->graph;
	uint32_t n = graph->index->n;
	bool *has_owner = torsh_memory_new((size_t)n + 1, sizeof(*has_owner));

	for (uint32_t i = 0; i < n; i++) {
		for (size_t k = graph->firsts[i]; !marking->verdicts[i] && k < graph->firsts[i + 1];
		     k++)
			has_owner[graph->pointers[k].block] = true;
	}
	/* First those, then of each round of blocks that point to each other the first one. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < n; i++) {
			if (marking->verdicts[i] || (!round && has_owner[i]))
				continue;
			mark(marking, i, VERDICT_LOST, 0);
			flood(marking, true, VERDICT_INDIRECT);
		}
	}
	free(has_owner);
}

void torsh_verdicts_find(struct verdicts *verdicts, const struct pointer_graph *graph)
{
	size_t n = (size_t)graph->index->n + 1;
	struct marking marking = {
		.graph = graph,
		.verdicts = torsh_memory_new(n, sizeof(*marking.verdicts)),
		.parents = torsh_memory_new(n, sizeof(*marking.parents)),
	};

	follow_roots(&marking, false, VERDICT_REACHABLE);
	flood(&marking, false, VERDICT_REACHABLE);
	flood_possible(&marking);
	verdicts->n_kept = (uint32_t)marking.n;
	divide_lost(&marking);
	verdicts->of = marking.verdicts;
	verdicts->parents = marking.parents;
	verdicts->order = marking.frontier;
	verdicts->n_roots = graph->n_roots;
}

void torsh_verdicts_trim(struct verdicts *verdicts)
{
	free(verdicts->parents);
	free(verdicts->order);
	verdicts->parents = verdicts->order = NULL;
}

void torsh_verdicts_free(struct verdicts *verdicts)
{
	free(verdicts->of);
	torsh_verdicts_trim(verdicts);
	*verdicts = (struct verdicts){0};
}
