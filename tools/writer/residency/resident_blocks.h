/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Live blocks of a process at one moment in the order of addresses, with what their allocator needs
 * for each: the begin and the end of its chunk.
 */
#ifndef TORSH_WRITER_RESIDENCY_RESIDENT_BLOCKS_H
#define TORSH_WRITER_RESIDENCY_RESIDENT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"

struct resident_block {
	uint64_t size;
	uint32_t stack;
	uint32_t rounding; /* bytes behind it that no other block can have */
};

struct resident_blocks {
	struct block_index index; /* the site of each is its number in items: in the end its own */
	struct resident_block *items;
	size_t capacity;
	bool is_glibc; /* chunks have a header of 8 bytes, and large ones have pages of their own */
};

/* A block with its chunk: begin <= address <= end <= chunk_end. */
struct resident_chunk {
	uint64_t begin, address, end, chunk_end;
	uint64_t size;
	uint32_t stack;
};

/* Create an empty list. */
void torsh_resident_blocks_create(struct resident_blocks *blocks, bool is_glibc);

/* Free it. */
void torsh_resident_blocks_destroy(struct resident_blocks *blocks);

/* Add a block, in any order; usable is its usable size, 0 if that is not known. */
void torsh_resident_blocks_add(struct resident_blocks *blocks, uint64_t address, uint64_t size,
			       uint64_t usable, uint32_t stack);

/* Add all of other, and put the blocks in order again. */
void torsh_resident_blocks_join(struct resident_blocks *blocks,
				const struct resident_blocks *other);

/* Call after the last one. */
void torsh_resident_blocks_end(struct resident_blocks *blocks);

/* Returns block number i, in the order of addresses; it ends where the next one begins at most. */
struct resident_chunk torsh_resident_blocks_at(const struct resident_blocks *blocks, uint32_t i);

/* Returns the number of the first one whose chunk ends behind the address; n if there is none. */
uint32_t torsh_resident_blocks_from(const struct resident_blocks *blocks, uint64_t address);

#endif
