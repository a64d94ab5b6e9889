/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/verdicts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

struct marking {
	const struct pointer_graph *graph;
	uint8_t *verdicts;
	uint32_t *frontier; /* blocks with a verdict whose pointers are still to be followed */
	size_t n, capacity;
};

static void mark(struct marking *marking, uint32_t block, enum verdict verdict)
{
	if (marking->verdicts[block])
		return;
	marking->verdicts[block] = (uint8_t)verdict;
	marking->frontier = torsh_array_reserve(marking->frontier, marking->n, &marking->capacity,
						sizeof(*marking->frontier));
	marking->frontier[marking->n++] = block;
}

/* Mark what these pointers lead to; with_interior: also what they only lead to the inside of. */
static void follow(struct marking *marking, size_t first, size_t end, bool with_interior,
		   enum verdict verdict)
{
	const struct pointer *pointers = marking->graph->pointers;

	for (size_t i = first; i < end; i++) {
		if (with_interior || !pointers[i].is_interior)
			mark(marking, pointers[i].block, verdict);
	}
}

/* Mark all that the frontier leads to. */
static void flood(struct marking *marking, bool with_interior, enum verdict verdict)
{
	const size_t *firsts = marking->graph->firsts;

	while (marking->n) {
		uint32_t block = marking->frontier[--marking->n];

		follow(marking, firsts[block], firsts[block + 1], with_interior, verdict);
	}
}

/* What reachable blocks and roots lead to the inside of, and what that leads to. */
static void flood_possible(struct marking *marking)
{
	const struct pointer_graph *graph = marking->graph;

	follow(marking, 0, graph->n_roots, true, VERDICT_POSSIBLE);
	for (uint32_t i = 0; i < graph->index->n; i++) {
		if (marking->verdicts[i] == VERDICT_REACHABLE)
			follow(marking, graph->firsts[i], graph->firsts[i + 1], true,
			       VERDICT_POSSIBLE);
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
		for (size_t k = graph->firsts[i]; !marking->verdicts[i] && k < graph->firsts[i + 1]; k++)
			has_owner[graph->pointers[k].block] = true;
	}
	/* First those, then of each round of blocks that point to each other the first one. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < n; i++) {
			if (marking->verdicts[i] || (!round && has_owner[i]))
				continue;
			mark(marking, i, VERDICT_LOST);
			flood(marking, true, VERDICT_INDIRECT);
		}
	}
	free(has_owner);
}

uint8_t *torsh_verdicts(const struct pointer_graph *graph)
{
	struct marking marking = {
		.graph = graph,
		.verdicts = torsh_memory_new((size_t)graph->index->n + 1, 1),
	};

	follow(&marking, 0, graph->n_roots, false, VERDICT_REACHABLE);
	flood(&marking, false, VERDICT_REACHABLE);
	flood_possible(&marking);
	divide_lost(&marking);
	free(marking.frontier);
	return marking.verdicts;
}
