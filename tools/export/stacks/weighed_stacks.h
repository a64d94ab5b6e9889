/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of one process that have a weight, numbered in the order in which they came. A program
 * that imports PyTorch has half a million, most with a few small numbers: they are packed.
 */
#ifndef TORSH_EXPORT_STACKS_WEIGHED_STACKS_H
#define TORSH_EXPORT_STACKS_WEIGHED_STACKS_H

#include "tools/base/containers/sparse_array.h"
#include "tools/base/containers/usage_list.h"
#include "tools/export/exporter.h"

struct weighed_stacks {
	const struct recorded_process *process;
	uint32_t *items; /* stacks by number */
	size_t n, n_room;
	struct usage_list weights[N_EXPORT_WEIGHTS]; /* by number, which may be there again */
	struct sparse_array numbers; /* uint32_t by stack: its number + 1 */
};

/* Start without stacks. torsh_weighed_stacks_free frees them. */
void torsh_weighed_stacks_create(struct weighed_stacks *stacks,
				 const struct recorded_process *process);

/* Free the stacks. */
void torsh_weighed_stacks_free(struct weighed_stacks *stacks);

/* Add to a weight of a stack. Returns the stack's number. */
uint32_t torsh_weighed_stacks_add(struct weighed_stacks *stacks, uint32_t stack,
				  enum export_weight weight, uint64_t blocks, uint64_t bytes);

/* End the additions: frees what only these need. */
void torsh_weighed_stacks_end(struct weighed_stacks *stacks);

/* Add up each weight of all stacks, to the totals. */
void torsh_weighed_stacks_sum(const struct weighed_stacks *stacks,
			      struct export_value totals[N_EXPORT_WEIGHTS]);

#endif
