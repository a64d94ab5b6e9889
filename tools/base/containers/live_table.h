/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks of a process by address: a hash map for the fold's hot path, where hash_map.h's
 * allocation and pointer for each entry would cost more than all else. A block is in the cache
 * line that its address's hash selects or, if two others are there, in one of the next lines: one
 * cache miss per look-up in a large heap, and hardly a mispredicted branch. Extendible hashing:
 * pages of at most LIVE_PAGE_SLOTS slots grow by 2 MiB in place and split in two, at 37 to 46
 * bytes per block; growing never stops the fold for more than the copy of one page.
 */
#ifndef TORSH_BASE_CONTAINERS_LIVE_TABLE_H
#define TORSH_BASE_CONTAINERS_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_PAGE_SLOTS (1u << 19) /* 16 MiB */
#define LIVE_SIZE_MAX ((UINT64_C(1) << 48) - 1)
#define LIVE_STAMP_MAX ((UINT64_C(1) << 56) - 1) /* 12 years at 3 GHz */
#define LIVE_EXCESS_UNKNOWN UINT32_MAX
#define LIVE_EXCESS_PAGES (UINT32_C(1) << 31)
#define LIVE_PAGE_BYTES 4096u

/* address 0: an empty slot. Pointers to blocks are valid until the next change of the table. */
struct live_block {
	uint64_t address;
	uint64_t size : 48;
	uint64_t producer : 16; /* slot of the thread that allocated it */
	uint64_t stamp : 56; /* since the process's first stamp */
	/*
	 * internal: in a line's first slot, the number of blocks that belong there but are in a
	 * later line
	 */
	uint64_t n_past : 8;
	uint32_t site;
	uint32_t excess; /* usable size beyond the size: see torsh_live_set_usable */
};

_Static_assert(sizeof(struct live_block) == 32, "two blocks share a cache line");

struct live_page;

struct live_table {
	struct live_page **directory; /* 1 << depth entries, by the upper bits of the hash */
	uint32_t depth;
	uint64_t n_blocks;
};

/* Create an empty table. */
void torsh_live_create(struct live_table *table);

/* Free the table. */
void torsh_live_destroy(struct live_table *table);

/* Prefetch what the next call for the address reads. */
void torsh_live_prefetch(const struct live_table *table, uint64_t address);

/* Returns the block at address, or NULL. */
struct live_block *torsh_live_find(const struct live_table *table, uint64_t address);

/*
 * Add a block at address, which is not 0. If a block is there already, nothing is added, *is_there
 * is true, and that block is returned.
 */
struct live_block *torsh_live_add(struct live_table *table, uint64_t address, bool *is_there);

/* Copy everything except the table's internal bits. */
static inline void torsh_live_copy(struct live_block *to, const struct live_block *from)
{
	uint64_t n_past = to->n_past;

	*to = *from;
	to->n_past = n_past;
}

/* Remove a block that torsh_live_find or _add returned just before. */
void torsh_live_remove(struct live_table *table, struct live_block *block);

/* Iterate over all blocks, in any order. Start with *at = 0; returns NULL after the last. */
struct live_block *torsh_live_next(const struct live_table *table, uint64_t *at);

/*
 * Remove each block for which is_moved returns true, and free unused memory. is_moved may copy a
 * block, but must not change the table.
 */
void torsh_live_sift(struct live_table *table,
		     bool (*is_moved)(void *context, const struct live_block *block),
		     void *context);

/* Returns the table's size in bytes, including empty slots. */
uint64_t torsh_live_bytes(const struct live_table *table);

/* The excess of a block with a usable size of whole pages, in pages beyond its own size. */
uint32_t torsh_live_large_excess(uint64_t size, uint64_t usable);

/*
 * Set malloc_usable_size's result. Unknown if it is 0, below the size, or too large for the field.
 */
static inline void torsh_live_set_usable(struct live_block *block, uint64_t usable)
{
	uint64_t excess = usable - block->size;

	block->excess = __builtin_expect(usable && excess < LIVE_EXCESS_PAGES, 1)
				? (uint32_t)excess
				: torsh_live_large_excess(block->size, usable);
}

/* Returns the usable size in bytes; 0: unknown. */
static inline uint64_t torsh_live_usable(const struct live_block *block)
{
	if (__builtin_expect(block->excess < LIVE_EXCESS_PAGES, 1))
		return block->size + block->excess;
	if (block->excess == LIVE_EXCESS_UNKNOWN)
		return 0;
	return (block->size / LIVE_PAGE_BYTES + (block->excess - LIVE_EXCESS_PAGES)) *
	       LIVE_PAGE_BYTES;
}

#endif
