/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The loops and conditions around a statement of a C++ kernel of Inductor's, and how many elements
 * they go over. A loop over a vector's lanes or over what is left of a range has the name of its
 * loop with an ending, "x1_inner" and "x1_tail": it is no further loop.
 */
#ifndef TORSH_OPS_INDUCTOR_CPP_LOOPS_H
#define TORSH_OPS_INDUCTOR_CPP_LOOPS_H

#include "tools/ops/inductor/cpp_types.h"

#define CPP_BLOCKS_MAX 64u
#define CPP_AXES_MAX 16u

/* A variable of a loop, and its range there. */
struct cpp_axis {
	struct cpp_text name;
	uint64_t from, to;
	bool is_known; /* false: an end is no number */
};

/* What is between two braces. */
struct cpp_block {
	struct cpp_axis axes[CPP_AXES_MAX];
	size_t n_axes;
	bool is_conditional; /* under another condition than on a range */
	bool is_loop_of_other; /* in a loop over threads and the like */
	/* A function in place, of which `result` is the value; is_operation: of one operation. */
	bool is_lambda, is_operation;
	size_t result;
};

struct cpp_loops {
	struct cpp_block blocks[CPP_BLOCKS_MAX];
	size_t n;
	struct cpp_block next; /* the one that a brace opens */
	bool is_broken; /* too deep, or braces that don't match */
};

/* Start outside of all braces. */
void torsh_cpp_loops_start(struct cpp_loops *loops);

/* Returns the block around; there is one. */
struct cpp_block *torsh_cpp_loops_at(struct cpp_loops *loops);

/*
 * Take a line over if it opens or closes a block, or says what the next one is. Returns false if
 * it is something else.
 */
bool torsh_cpp_loops_take(struct cpp_loops *loops, struct cpp_text line);

/* Get the number of elements of a block. Returns false if it is unknown, or takes over 64 bits. */
bool torsh_cpp_loops_elements(const struct cpp_block *block, uint64_t *n);

#endif
