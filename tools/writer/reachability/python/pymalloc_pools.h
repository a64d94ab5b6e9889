/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pools of CPython's allocator for small objects (Objects/obmalloc.c, 3.8 to 3.14, with the
 * GIL): a pool has a header, blocks of one size of which the first ones were handed out at least
 * once, and a list of those that are free.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYMALLOC_POOLS_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYMALLOC_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_BYTES_MAX 16384u
#define POOL_BLOCKS_MAX (POOL_BYTES_MAX / 16)
#define POOL_ALIGNMENT 4096u /* of the smallest pools */

struct pymalloc_pool {
	uint64_t address;
	uint32_t bytes; /* of the pool */
	uint32_t block_bytes;
	uint32_t first; /* offset of the first block */
	uint32_t n_blocks; /* handed out at least once */
	uint64_t is_free[POOL_BLOCKS_MAX / 64]; /* a bit a block */
};

/*
 * Read a pool from the words that are at the address; those from the nth on were never written: 0.
 * Returns false if there is none: its header and its list of free blocks have to agree.
 */
bool torsh_pymalloc_pool_read(struct pymalloc_pool *pool, uint64_t address, const uint64_t *words,
			      size_t n);

/* Returns whether these words have the header of a pool, whatever its list of free blocks says. */
bool torsh_pymalloc_is_begin(uint64_t address, const uint64_t *words, size_t n);

/* Returns whether that block is handed out. */
static inline bool torsh_pymalloc_is_used(const struct pymalloc_pool *pool, uint32_t block)
{
	return !(pool->is_free[block / 64] >> block % 64 & 1);
}

#endif
