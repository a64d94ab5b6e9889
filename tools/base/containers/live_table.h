/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks of a process by address: the one hash map from which entries go, written for the
 * fold's hot path. A block lies in the cache line that its address's hash names, or, where two
 * others lie there, in one of the next: one cache miss a look-up in a large heap, and hardly a
 * branch that is guessed wrong. Extendible hashing: pages of at most LIVE_PAGE_SLOTS slots that
 * grow by 2 MiB where they lie, and split in two: 37 to 46 bytes a block, and growing never stops
 * the fold for more than a page's copy.
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

/* address 0: an empty slot. Pointers to blocks hold until the next change of the table. */
struct live_block {
	uint64_t address;
	uint64_t size : 48;
	uint64_t producer : 16; /* slot of the thread that allocated it */
	uint64_t stamp : 56; /* since the process's first stamp */
	/* the table's: in a line's first slot, blocks that should lie there and lie further on */
	uint64_t n_past : 8;
	uint32_t site;
	uint32_t excess; /* of the usable size over the size: see torsh_live_set_usable */
};

_Static_assert(sizeof(struct live_block) == 32, "two blocks share a cache line");

struct live_page;

struct live_table {
	struct live_page **directory; /* 1 << depth entries, by the hash's upper bits */
	uint32_t depth;
	uint64_t n_blocks;
};

/* Create an empty table. */
void torsh_live_create(struct live_table *table);

/* Free the table. */
void torsh_live_destroy(struct live_table *table);

/* Fetch into the cache what the next call for the address reads. */
void torsh_live_prefetch(const struct live_table *table, uint64_t address);

/* The block at address, or NULL. */
struct live_block *torsh_live_find(const struct live_table *table, uint64_t address);

/*
 * Add a block. Where one lives at the address already nothing is added, *is_there is true and that
 * block is returned. address is not 0.
 */
struct live_block *torsh_live_add(struct live_table *table, uint64_t address, bool *is_there);

/* Copy all but the table's own bits. */
static inline void torsh_live_copy(struct live_block *to, const struct live_block *from)
{
	uint64_t n_past = to->n_past;

	*to = *from;
	to->n_past = n_past;
}

/* Remove a block that torsh_live_find or _add returned just before. */
void torsh_live_remove(struct live_table *table, struct live_block *block);

/* All blocks, in no order. Start with *at = 0; NULL after the last. */
struct live_block *torsh_live_next(const struct live_table *table, uint64_t *at);

/*
 * Remove each block for which is_moved returns true, and free the memory that they took. is_moved
 * may copy a block, and doesn't change the table.
 */
void torsh_live_sift(struct live_table *table,
		     bool (*is_moved)(void *context, const struct live_block *block),
		     void *context);

/* Memory that the table takes, empty slots included. */
uint64_t torsh_live_bytes(const struct live_table *table);

/*
 * The excess of a block whose usable size is that of whole pages, in pages from the size's own on.
 */
uint32_t torsh_live_large_excess(uint64_t size, uint64_t usable);

/*
 * malloc_usable_size's result. 0, less than the size, or more than pages can say: it is not known.
 */
static inline void torsh_live_set_usable(struct live_block *block, uint64_t usable)
{
	uint64_t excess = usable - block->size;

	block->excess = __builtin_expect(usable && excess < LIVE_EXCESS_PAGES, 1)
				? (uint32_t)excess
				: torsh_live_large_excess(block->size, usable);
}

/* 0: not known. */
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
