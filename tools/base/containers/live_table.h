/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks of a process by address: a hash map for the fold's hot path, where hash_map.h's
 * allocation and pointer for each entry would cost more than all else. A block is in the bucket
 * that its address's hash selects or, if seven others are there, in one of the next buckets: one
 * or two adjacent cache lines per look-up in a large heap, and hardly a mispredicted branch.
 * Extendible hashing: pages of at most 32 MiB grow by an eighth in place and split in two, at 21 to
 * 24 bytes per block; growing never stops the fold for more than the copy of one page.
 *
 * A slot has 17 bytes and a tag. Of most blocks it holds everything. The others are stored whole in
 * a hash_map besides, at some 140 bytes: wide blocks, for example those of 64 KiB and more, and all
 * from stamp 2^50 on (69 days at 3 GHz).
 */
#ifndef TORSH_BASE_CONTAINERS_LIVE_TABLE_H
#define TORSH_BASE_CONTAINERS_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"

#define LIVE_PAGE_BYTES (32u << 20)
#define LIVE_NEAR_BLOCKS 4096u /* fewer fit into the cache beside all else that a fold reads */
#define LIVE_SIZE_MAX ((UINT64_C(1) << 48) - 1)
#define LIVE_STAMP_MAX ((UINT64_C(1) << 56) - 1) /* 12 years at 3 GHz */

struct live_block {
	uint64_t address; /* not 0 */
	uint64_t size; /* <= LIVE_SIZE_MAX */
	uint64_t usable; /* malloc_usable_size's result; 0: unknown */
	uint64_t stamp; /* since the process's first stamp; <= LIVE_STAMP_MAX */
	uint32_t site;
	uint32_t owner; /* a number of the caller's; blocks with another one than 0 are wide */
};

struct live_page;
struct live_bucket;

/*
 * The slot that was filled or emptied last: many blocks are freed next, and allocators give out
 * first what was freed last.
 */
struct live_latest {
	uint64_t address; /* that it has or had; 0: none */
	struct live_page *page;
	struct live_bucket *bucket; /* where the address belongs first */
	uint32_t slot;
	bool is_there; /* a block with that address */
};

struct live_table {
	struct live_page **directory; /* 1 << depth entries, by the upper bits of the hash */
	uint32_t depth; /* at least 1, so that page numbers take one shift */
	struct live_latest latest;
	uint64_t n_blocks;
	struct hash_map wide; /* by address: pointers to struct live_block */
};

/* Create an empty table. */
void torsh_live_create(struct live_table *table);

/* Free the table. */
void torsh_live_destroy(struct live_table *table);

/* See torsh_live_prefetch. */
void torsh_live_prefetch_far(const struct live_table *table, uint64_t address);

/* Prefetch what the next call for the address reads, unless the whole table is in a cache. */
static inline void torsh_live_prefetch(const struct live_table *table, uint64_t address)
{
	if (table->n_blocks >= LIVE_NEAR_BLOCKS)
		torsh_live_prefetch_far(table, address);
}

/* Set *block to the block at address; returns false if there is none. */
bool torsh_live_find(const struct live_table *table, uint64_t address, struct live_block *block);

/* Likewise, and remove it. */
bool torsh_live_take(struct live_table *table, uint64_t address, struct live_block *block);

/*
 * Add a block. Returns true if one was at its address already: that is replaced, and copied to
 * *before.
 */
bool torsh_live_put(struct live_table *table, const struct live_block *block,
		    struct live_block *before);

/*
 * Iterate over all blocks, in any order, while the table does not change. Start with *at = 0;
 * returns false after the last.
 */
bool torsh_live_next(const struct live_table *table, uint64_t *at, struct live_block *block);

/*
 * Remove each block for which is_moved returns true, and free unused memory. is_moved must not
 * change the table.
 */
void torsh_live_sift(struct live_table *table,
		     bool (*is_moved)(void *context, const struct live_block *block),
		     void *context);

/* Returns the table's size in bytes, including empty slots. */
uint64_t torsh_live_bytes(const struct live_table *table);

#endif
