/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the loaded modules of a program of Python lead to, in fewest steps, and then what only the
 * variables of running frames lead to. The interpreter keeps much by shorter ways, caches for
 * example, which have no names.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_REACH_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_REACH_H

#include "tools/writer/reachability/pointer_graph.h"
#include "tools/writer/reachability/python/python_frames.h"
#include "tools/writer/reachability/python/python_heap.h"

struct python_reach {
	uint32_t modules; /* the block of sys.modules; NO_BLOCK: not found */
	/* by block: the one before it + 1, itself if it is the first; 0: not reached */
	uint32_t *parents;
	uint32_t *order; /* the blocks, each behind its parent */
	uint32_t n, n_followed;
	struct python_frames frames;
};

/* Find them; free with torsh_python_reach_free. */
void torsh_python_reach_find(struct python_reach *reach, struct python_heap *heap,
			     const struct pointer_graph *graph);

/* Free it. */
void torsh_python_reach_free(struct python_reach *reach);

/* Returns the block before this one; NO_BLOCK: it is the first one, or not reached. */
static inline uint32_t torsh_python_reach_parent(const struct python_reach *reach, uint32_t block)
{
	return reach->parents && reach->parents[block] && reach->parents[block] - 1 != block
		       ? reach->parents[block] - 1
		       : NO_BLOCK;
}

/* Returns whether the block is reached. */
static inline bool torsh_python_reaches(const struct python_reach *reach, uint32_t block)
{
	return reach->parents && reach->parents[block];
}

/* Returns the variable that leads to this block at first; NULL: sys.modules is first. */
const struct python_variable *torsh_python_reach_variable(const struct python_reach *reach,
							  uint32_t block);

#endif
