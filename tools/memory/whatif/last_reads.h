/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When the blocks of a call would be free if nothing kept them for the backward pass. Which tensor
 * an operator reads is not recorded, its size is: each input is taken for the block of that size
 * that was read least, of these the latest one.
 */
#ifndef TORSH_MEMORY_WHATIF_LAST_READS_H
#define TORSH_MEMORY_WHATIF_LAST_READS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/memory/whatif/module_calls.h"

/* A block that the call allocated, or what it was given. */
struct read_block {
	uint64_t bytes; /* that PyTorch gave out */
	uint64_t from_ns, until_ns; /* until the recorded run freed it */
	/* set: when the last operator that read it ended; 0: unknown, as for what has views */
	uint64_t last_read_ns;
	uint32_t n_reads;
	bool is_given, has_views;
	uint32_t block; /* the caller's */
};

/* Returns true if a tensor of so many bytes can have a block of that size. */
bool torsh_can_be_in_block(uint64_t tensor_bytes, uint64_t block_bytes);

/*
 * Set last_read_ns of n blocks in the order of their allocations. blocks[n] is there for what the
 * call was given.
 */
void torsh_last_reads_find(const struct call_operator *operators, size_t n_operators,
			   struct read_block *blocks, size_t n);

#endif
