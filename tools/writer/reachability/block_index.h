/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks of a process at one moment in the order of addresses, and which of them contains
 * an address.
 */
#ifndef TORSH_WRITER_REACHABILITY_BLOCK_INDEX_H
#define TORSH_WRITER_REACHABILITY_BLOCK_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_BLOCK UINT32_MAX
#define BLOCKS_MAX (UINT32_C(1) << 31) /* more are not indexed */

/* Sites from here on: a block of CPython's allocator, whose object has headers of 16 bytes each. */
#define FIRST_PYTHON_SITE UINT32_C(0xfffffff0)

struct indexed_block {
	uint64_t address;
	uint32_t size; /* see torsh_block_size */
	uint32_t site;
};

#define BLOCK_INDEX_MEGABYTES 1024u

/* The blocks of a gigabyte by its megabytes. */
struct block_gigabyte {
	/*
	 * NULL, or for each part of the megabyte the number + 1 of the first block that lies in it,
	 * 0 for none
	 */
	uint32_t *parts[BLOCK_INDEX_MEGABYTES];
	/* where that is NULL: likewise of the block that all of the megabyte is in */
	uint32_t whole[BLOCK_INDEX_MEGABYTES];
};

struct block_index {
	struct indexed_block *blocks;
	uint32_t n;
	size_t capacity;
	uint64_t begin, end; /* of all blocks */
	struct block_gigabyte **gigabytes; /* by the address's gigabyte; NULL: has no block */
	uint32_t *used; /* numbers of those that are not NULL */
	uint32_t n_used;
	size_t used_capacity;
};

/* Create an empty index. */
void torsh_block_index_create(struct block_index *index);

/* Free it. */
void torsh_block_index_destroy(struct block_index *index);

/* Add a block, in any order. */
void torsh_block_index_add(struct block_index *index, uint64_t address, uint64_t size,
			   uint32_t site);

/* Put the blocks in the order of addresses, for who reads only that: no address is found. */
void torsh_block_index_sort(struct block_index *index);

/* Call after the last block: only then addresses are found. */
void torsh_block_index_end(struct block_index *index);

/*
 * Leave out the blocks of CPython's allocator, and what `of` has of them: a byte for each block in
 * their order.
 */
void torsh_block_index_drop_python(struct block_index *index, uint8_t *of);

/*
 * Returns the block's size in bytes, which is at least 1: from 2 GiB on it is up to 64 KiB more
 * than was requested.
 */
static inline uint64_t torsh_block_size(const struct indexed_block *block)
{
	return block->size >> 31 ? (uint64_t)(block->size & INT32_MAX) << 16 : block->size;
}

static inline bool torsh_block_is_python(const struct indexed_block *block)
{
	return block->site >= FIRST_PYTHON_SITE;
}

/* Returns where in its block of CPython's allocator an object begins, in bytes. */
static inline uint32_t torsh_block_object_offset(const struct indexed_block *block)
{
	return (block->site - FIRST_PYTHON_SITE) * 16;
}

/* Returns the number of the block that contains the address, or NO_BLOCK. */
uint32_t torsh_block_index_find(const struct block_index *index, uint64_t address);

#define BLOCK_INDEX_MANY 32u

/*
 * Likewise for n addresses, at most BLOCK_INDEX_MANY: in less time, as the memory that is read for
 * each is fetched together.
 */
void torsh_block_index_find_many(const struct block_index *index, const uint64_t *addresses,
				 size_t n, uint32_t *blocks);

/* Returns the number of the first block that ends behind the address; n if there is none. */
uint32_t torsh_block_index_from(const struct block_index *index, uint64_t address);

#endif
