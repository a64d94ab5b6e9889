/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What an operator requested of the allocator, by the shapes of its inputs, and whether that grows
 * with the batch: the block that it got can be larger.
 */
#ifndef TORSH_MEMORY_WHATIF_ALLOCATION_SIZE_H
#define TORSH_MEMORY_WHATIF_ALLOCATION_SIZE_H

#include "tools/memory/whatif/reduction.h"

/* PART(NAME, name) */
#define SIZE_PARTS             \
	PART(SCALES, scales)   \
	PART(ASSUMED, assumed) \
	PART(FIXED, fixed)     \
	PART(UNKNOWN, unknown)

/*
 * SCALES: the shape has the batch. ASSUMED: the shape is unknown, but an input has the batch.
 * FIXED: it has not, or is a parameter's. UNKNOWN: there are no shapes.
 */
enum size_part {
#define PART(NAME, name) SIZE_##NAME,
	SIZE_PARTS
#undef PART
		N_SIZE_PARTS
};

struct allocation_size {
	uint64_t bytes; /* the requested size */
	enum size_part part;
	struct reduction reduction; /* that the block is the result or has parts of */
	bool is_parts;
};

struct allocation {
	const struct batch *batch;
	const struct span *innermost; /* the operator that allocated; NULL: none */
	uint64_t block_bytes;
	bool is_first; /* of its operator */
	uint64_t n_threads; /* that the device runs at once; 0: unknown */
};

/* Find the size of a block. */
struct allocation_size torsh_allocation_size(const struct allocation *allocation);

#endif
