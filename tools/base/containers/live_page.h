/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A page of live_table.h: the blocks whose hashes have the same upper bits, in buckets. It grows in
 * place, or is halved.
 */
#ifndef TORSH_BASE_CONTAINERS_LIVE_PAGE_H
#define TORSH_BASE_CONTAINERS_LIVE_PAGE_H

#include <stddef.h>

#include "tools/base/containers/live_bucket.h"

#define FIRST_BUCKETS 32u
#define SMALL_BUCKETS ((128u << 10) / (uint32_t)sizeof(struct live_bucket)) /* malloc has fewer */
#define REGION_BUCKETS ((2u << 20) / (uint32_t)sizeof(struct live_bucket))
#define PAGE_BUCKETS (LIVE_PAGE_BYTES / (uint32_t)sizeof(struct live_bucket))
#define HUGE_BUCKETS (PAGE_BUCKETS / 2) /* from here on its memory is of huge pages */

struct live_page {
	struct live_bucket *buckets;
	uint32_t n_buckets;
	uint32_t n_blocks;
	uint32_t full_at; /* number of blocks at which it grows: seven eighths */
	uint32_t depth; /* number of hash bits that all its blocks share */
	/* Fit into its memory; from SMALL_BUCKETS on untouched ones cost nothing. */
	uint32_t n_room;
};

/* Create an empty page of n buckets whose blocks share `depth` hash bits. */
struct live_page *torsh_live_page_create(uint32_t n, uint32_t depth);

/* Free the page. */
void torsh_live_page_destroy(struct live_page *page);

/* Make room for more blocks. */
void torsh_live_page_enlarge(struct live_page *page);

/* Move the blocks with the next hash bit set to an empty page that is half as large. */
void torsh_live_page_halve(struct live_page *page, struct live_page *upper);

/* Give the page, from which n_removed blocks were cleared, no more buckets than it needs. */
void torsh_live_page_shrink(struct live_page *page, uint32_t n_removed);

/* Where a block is. */
struct live_place {
	struct live_bucket *bucket; /* NULL: nowhere */
	uint32_t slot;
};

static inline uint64_t torsh_live_hash(uint64_t address)
{
	return address * UINT64_C(0x9e3779b97f4a7c15);
}

/*
 * The bucket where a block belongs, in the order of hashes: when a page grows, blocks move up one
 * after another, and a split moves the upper half to the other page.
 */
static inline uint32_t torsh_live_page_home(const struct live_page *page, uint64_t hash)
{
	return (uint32_t)((unsigned __int128)(hash << page->depth) * page->n_buckets >> 64);
}

static inline uint32_t torsh_live_page_after(const struct live_page *page, uint32_t i)
{
	return __builtin_expect(i + 1 == page->n_buckets, 0) ? 0 : i + 1;
}

static inline size_t torsh_live_page_bytes(uint32_t n_buckets)
{
	return (size_t)n_buckets * sizeof(struct live_bucket);
}

/*
 * Returns the place of a narrow address. The search past full buckets wraps around to its first
 * bucket and ends there, because hostile addresses can let blocks pass everywhere.
 */
static inline struct live_place torsh_live_page_find(const struct live_page *page, uint64_t hash,
						     uint64_t address)
{
	uint64_t tag = torsh_slot_tag(address), key = torsh_slot_key_of(address);
	uint32_t home = torsh_live_page_home(page, hash), i = home, mark = torsh_slot_mark(address);

	do {
		struct live_bucket *bucket = &page->buckets[i];

		for (uint64_t bits = torsh_bucket_matches(bucket, tag); bits; bits &= bits - 1) {
			uint32_t slot = torsh_bucket_first(bits);

			if (__builtin_expect(torsh_slot_key(bucket->slots[slot]) == key, 1))
				return (struct live_place){bucket, slot};
		}
		if (__builtin_expect(!(bucket->passed & mark), 1))
			break;
		i = torsh_live_page_after(page, i);
	} while (i != home);
	return (struct live_place){0};
}

/* Returns an empty slot for a new block; counts it in the full buckets that were skipped. */
static inline struct live_place torsh_live_page_add(struct live_page *page, uint64_t hash,
						    uint64_t address)
{
	uint32_t i = torsh_live_page_home(page, hash);

	page->n_blocks++;
	for (;;) {
		struct live_bucket *bucket = &page->buckets[i];
		uint64_t empty = torsh_bucket_empty(bucket);

		if (__builtin_expect(empty != 0, 1))
			return (struct live_place){bucket, torsh_bucket_first(empty)};
		torsh_bucket_pass(bucket, address);
		i = torsh_live_page_after(page, i);
	}
}

/* Empty the slot of a block with that hash. Returns true if it was in the first bucket for it. */
static inline bool torsh_live_page_clear(struct live_page *page, uint64_t hash,
					 struct live_place place)
{
	uint32_t at = (uint32_t)(place.bucket - page->buckets),
		 home = torsh_live_page_home(page, hash);

	for (uint32_t i = home; __builtin_expect(i != at, 0); i = torsh_live_page_after(page, i))
		torsh_bucket_unpass(&page->buckets[i]);
	torsh_bucket_clear(place.bucket, place.slot);
	page->n_blocks--;
	return home == at;
}

#endif
