/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether blocks can still be reached, with the meanings of Valgrind's memcheck: a program can use
 * a block, or free it, if it finds a pointer to it.
 */
#ifndef TORSH_WRITER_REACHABILITY_VERDICTS_H
#define TORSH_WRITER_REACHABILITY_VERDICTS_H

#include <stdint.h>

#include "tools/writer/reachability/pointer_graph.h"

enum verdict {
	VERDICT_UNKNOWN, /* not judged */
	VERDICT_LOST, /* nothing points to it, but for blocks that were lost with it */
	VERDICT_INDIRECT, /* lost with another block, which points to it */
	VERDICT_POSSIBLE, /* each way to it takes a pointer to the inside of a block */
	VERDICT_REACHABLE,
	N_VERDICTS
};

/* The verdicts of a graph's blocks. */
struct verdicts {
	uint8_t *of; /* enum verdict, by block */
	/*
	 * by block: how it is reached in fewest steps: the pointer of a root + 1, or n_roots + 1 +
	 * the block that points to it; 0: not
	 */
	uint32_t *parents;
	size_t n_roots; /* pointers of roots */
	uint32_t *order; /* the blocks; first those that are kept, each behind its parent */
	uint32_t n_kept;
};

/* Returns the block through which the block is reached; NO_BLOCK: a root points to it, or none. */
static inline uint32_t torsh_verdicts_parent(const struct verdicts *verdicts, uint32_t block)
{
	uint32_t parent = verdicts->parents[block];

	return parent > verdicts->n_roots ? (uint32_t)(parent - verdicts->n_roots - 1) : NO_BLOCK;
}

/*
 * Find the verdicts; torsh_verdicts_free frees them. Of blocks that only point to each other the
 * one with the lowest address counts as lost, the others as lost with it.
 */
void torsh_verdicts_find(struct verdicts *verdicts, const struct pointer_graph *graph);

/* Free what is only needed while the graph is there: only `of` stays. */
void torsh_verdicts_trim(struct verdicts *verdicts);

/* Free them. */
void torsh_verdicts_free(struct verdicts *verdicts);

#endif
