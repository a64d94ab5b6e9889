/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The free blocks of a framework's allocator: what lies between the tensors in the memory that it
 * reserved. Adjacent segments are one where they are pages of the same range.
 */
#ifndef TORSH_DEVICE_OWNERS_FREE_BLOCKS_H
#define TORSH_DEVICE_OWNERS_FREE_BLOCKS_H

#include "tools/device/memory/device_blocks.h"

struct free_blocks {
	uint64_t n, bytes, largest_bytes;
};

/* Which of the allocator's memory is meant. */
struct free_blocks_choice {
	uint32_t scope;
	const bool *is_managed; /* by the ordinals of blocks: the allocator's; n_ordinals of them */
	const bool *is_private; /* likewise: reserved for CUDA graphs */
	size_t n_private;
	bool wants_private;
	uint64_t n_ordinals; /* blocks from this ordinal on are left out; UINT64_MAX: none */
};

/* Find the free blocks of a choice, at this moment of the blocks. */
struct free_blocks torsh_free_blocks(const struct device_blocks *blocks,
				     const struct free_blocks_choice *choice);

#endif
