/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/live_table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/live_page.h"
#include "tools/base/memory.h"

#define DEPTH_MAX 16u
/* of a wide block: its entry and key, the block, and their share of the map's slots */
#define WIDE_BYTES (sizeof(struct hash_entry) + sizeof(struct live_block) + 48)

static uint64_t page_number(const struct live_table *table, uint64_t hash)
{
	return hash >> (64 - table->depth);
}

static struct live_page *page_of(const struct live_table *table, uint64_t hash)
{
	return table->directory[page_number(table, hash)];
}

/* ---- wide blocks ----------------------------------------------------------------------------- */

static struct live_block *block_of(const struct hash_entry *entry)
{
	return (struct live_block *)(uintptr_t)entry->value;
}

/* Not inlined, like all that concerns wide blocks: the common path stays short. */
static __attribute__((noinline)) bool find_wide(const struct live_table *table, uint64_t address,
						struct live_block *block)
{
	const struct hash_entry *entry =
		table->wide.n ? torsh_hash_map_find(&table->wide, &address, sizeof(address)) : NULL;

	if (entry)
		*block = *block_of(entry);
	return entry != NULL;
}

static __attribute__((noinline)) bool take_wide(struct live_table *table, uint64_t address,
						struct live_block *block)
{
	size_t value;

	if (!table->wide.n ||
	    !torsh_hash_map_remove(&table->wide, &address, sizeof(address), &value))
		return false;
	*block = *(struct live_block *)(uintptr_t)value;
	free((void *)(uintptr_t)value);
	return true;
}

/* No block is at its address in the map. */
static __attribute__((noinline)) void add_wide(struct live_table *table,
					       const struct live_block *block)
{
	struct live_block *copy = torsh_memory_alloc(sizeof(*copy));

	*copy = *block;
	torsh_hash_map_put(&table->wide, &block->address, sizeof(block->address), (uintptr_t)copy);
}

static void double_directory(struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth;
	struct live_page **directory = torsh_memory_new(2 * n, sizeof(*directory));

	for (uint64_t i = 0; i < n; i++)
		directory[2 * i] = directory[2 * i + 1] = table->directory[i];
	free(table->directory);
	table->directory = directory;
	table->depth++;
}

static void split_page(struct live_table *table, struct live_page *page, uint64_t hash)
{
	struct live_page *upper = torsh_live_page_create(page->n_buckets / 2, page->depth + 1);
	uint64_t n_entries, first;

	if (page->depth == table->depth)
		double_directory(table);
	n_entries = UINT64_C(1) << (table->depth - page->depth);
	first = page_number(table, hash) & ~(n_entries - 1);
	torsh_live_page_halve(page, upper);
	for (uint64_t i = n_entries / 2; i < n_entries; i++)
		table->directory[first + i] = upper;
}

/* Split or enlarge the page of the hash. Not inlined, because it is rare. */
static __attribute__((noinline)) struct live_page *grow(struct live_table *table,
							struct live_page *page, uint64_t hash)
{
	while (page->n_blocks >= page->full_at) {
		if (page->n_buckets < PAGE_BUCKETS || page->depth == DEPTH_MAX)
			torsh_live_page_enlarge(page);
		else
			split_page(table, page, hash);
		page = page_of(table, hash);
	}
	return page;
}

/* ---- the table ------------------------------------------------------------------------------- */

void torsh_live_create(struct live_table *table)
{
	*table = (struct live_table){.directory = torsh_memory_new(2, sizeof(table->directory[0])),
				     .depth = 1};
	table->directory[0] = table->directory[1] = torsh_live_page_create(FIRST_BUCKETS, 0);
}

static void free_wide(void *block)
{
	free(block);
}

/* The directory's entries for one page are adjacent: the first one frees it. */
void torsh_live_destroy(struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth;

	for (uint64_t i = 0; i < n;) {
		struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		torsh_live_page_destroy(page);
	}
	free(table->directory);
	torsh_hash_map_free_values(&table->wide, free_wide);
	*table = (struct live_table){0};
}

void torsh_live_prefetch_far(const struct live_table *table, uint64_t address)
{
	uint64_t hash = torsh_live_hash(address);
	const struct live_page *page = page_of(table, hash);
	const struct live_bucket *bucket = &page->buckets[torsh_live_page_home(page, hash)];

	__builtin_prefetch(bucket, 1);
	__builtin_prefetch((const char *)bucket + 64, 1);
}

bool torsh_live_find(const struct live_table *table, uint64_t address, struct live_block *block)
{
	uint64_t hash = torsh_live_hash(address);
	struct live_place place;

	if (__builtin_expect(!torsh_slot_fits(address), 0))
		return find_wide(table, address, block);
	place = torsh_live_page_find(page_of(table, hash), hash, address);
	if (!place.bucket)
		return false;
	block->address = address;
	return torsh_slot_get(place.bucket->slots[place.slot], block) ||
	       find_wide(table, address, block);
}

/* Remove the block at the address, which is in the latest slot. */
static inline void take_latest(struct live_table *table, uint64_t address, struct live_block *block)
{
	struct live_latest *latest = &table->latest;

	block->address = address;
	if (!torsh_slot_get(latest->bucket->slots[latest->slot], block))
		take_wide(table, address, block);
	torsh_bucket_clear(latest->bucket, latest->slot);
	latest->is_there = false;
	latest->page->n_blocks--;
	table->n_blocks--;
}

bool torsh_live_take(struct live_table *table, uint64_t address, struct live_block *block)
{
	struct live_page *page;
	struct live_place place;
	uint64_t hash;

	if (table->latest.address == address && table->latest.is_there) {
		take_latest(table, address, block);
		return true;
	}
	if (__builtin_expect(!torsh_slot_fits(address), 0)) {
		if (!take_wide(table, address, block))
			return false;
		table->n_blocks--;
		return true;
	}
	hash = torsh_live_hash(address);
	page = page_of(table, hash);
	place = torsh_live_page_find(page, hash, address);
	if (__builtin_expect(!place.bucket, 0))
		return false;
	block->address = address;
	if (!torsh_slot_get(place.bucket->slots[place.slot], block))
		take_wide(table, address, block);
	table->latest = (struct live_latest){
		.address = torsh_live_page_clear(page, hash, place) ? address : 0,
		.page = page,
		.bucket = place.bucket,
		.slot = place.slot,
	};
	table->n_blocks--;
	return true;
}

static __attribute__((noinline)) bool
put_wide(struct live_table *table, const struct live_block *block, struct live_block *before)
{
	bool is_there = take_wide(table, block->address, before);

	add_wide(table, block);
	table->n_blocks += !is_there;
	return is_there;
}

static __attribute__((noinline)) void replace(struct live_table *table, struct live_place place,
					      const struct live_block *block, uint64_t rest,
					      struct live_block *before)
{
	before->address = block->address;
	if (!torsh_slot_get(place.bucket->slots[place.slot], before))
		take_wide(table, block->address, before);
	torsh_bucket_set(place.bucket, place.slot, block, rest);
	if (rest == REST_WIDE)
		add_wide(table, block);
}

/* Put a block into the latest slot, which had its address: the page is not full. */
static inline void put_latest(struct live_table *table, const struct live_block *block,
			      uint64_t rest)
{
	struct live_latest *latest = &table->latest;

	torsh_bucket_set(latest->bucket, latest->slot, block, rest);
	if (__builtin_expect(rest == REST_WIDE, 0))
		add_wide(table, block);
	latest->is_there = true;
	latest->page->n_blocks++;
	table->n_blocks++;
}

bool torsh_live_put(struct live_table *table, const struct live_block *block,
		    struct live_block *before)
{
	uint64_t hash, rest = torsh_slot_rest(block);
	struct live_page *page;
	struct live_place place;
	bool is_home;

	if (table->latest.address == block->address && !table->latest.is_there) {
		put_latest(table, block, rest);
		return false;
	}
	if (__builtin_expect(!torsh_slot_fits(block->address), 0))
		return put_wide(table, block, before);
	hash = torsh_live_hash(block->address);
	page = page_of(table, hash);
	place = torsh_live_page_find(page, hash, block->address);
	if (__builtin_expect(place.bucket != NULL, 0)) {
		replace(table, place, block, rest, before);
		return true;
	}
	if (__builtin_expect(page->n_blocks >= page->full_at, 0))
		page = grow(table, page, hash);
	place = torsh_live_page_add(page, hash, block->address);
	torsh_bucket_set(place.bucket, place.slot, block, rest);
	if (__builtin_expect(rest == REST_WIDE, 0))
		add_wide(table, block);
	is_home = torsh_live_page_home(page, hash) == (uint32_t)(place.bucket - page->buckets);
	table->latest = (struct live_latest){
		.address = is_home ? block->address : 0,
		.page = page,
		.bucket = place.bucket,
		.slot = place.slot,
		.is_there = is_home,
	};
	table->n_blocks++;
	return false;
}

/* The upper half of *at is the directory's entry; then the map's blocks follow. */
static bool next_wide(const struct live_table *table, uint64_t *at, struct live_block *block)
{
	uint64_t entry = UINT64_C(1) << table->depth;
	size_t map_at = (size_t)(*at - (entry << 32));
	const struct hash_entry *found = torsh_hash_map_next(&table->wide, &map_at);

	if (!found)
		return false;
	*at = (entry << 32) + map_at;
	*block = *block_of(found);
	return true;
}

/* Set *block to a block that is not wide; returns false if the slot has none. */
static bool get_narrow(const struct live_bucket *bucket, uint32_t i, struct live_block *block)
{
	if (!torsh_bucket_has(bucket, i) || !torsh_slot_get(bucket->slots[i], block))
		return false;
	block->address = torsh_bucket_address(bucket, i);
	return true;
}

bool torsh_live_next(const struct live_table *table, uint64_t *at, struct live_block *block)
{
	/* The upper half of *at is the directory's entry, the lower half the slot. */
	uint64_t entry = *at >> 32, n_entries = UINT64_C(1) << table->depth;
	uint32_t slot = (uint32_t)*at;

	while (entry < n_entries) {
		const struct live_page *page = table->directory[entry];

		for (; slot < page->n_buckets * BUCKET_SLOTS; slot++) {
			if (get_narrow(&page->buckets[slot / BUCKET_SLOTS], slot % BUCKET_SLOTS,
				       block)) {
				*at = entry << 32 | (slot + 1);
				return true;
			}
		}
		slot = 0;
		entry += UINT64_C(1) << (table->depth - page->depth);
		*at = entry << 32;
	}
	return next_wide(table, at, block);
}

typedef bool is_moved_function(void *context, const struct live_block *block);

/* Returns true if the slot's block was removed. */
static bool sift_slot(struct live_table *table, struct live_bucket *bucket, uint32_t i,
		      is_moved_function *is_moved, void *context)
{
	struct live_block block = {.address = torsh_bucket_address(bucket, i)};
	bool is_wide = !torsh_slot_get(bucket->slots[i], &block);

	if (is_wide)
		find_wide(table, block.address, &block);
	if (!is_moved(context, &block))
		return false;
	if (is_wide)
		take_wide(table, block.address, &block);
	torsh_bucket_clear(bucket, i);
	return true;
}

/* Returns the number of blocks removed. */
static uint32_t sift_page(struct live_table *table, struct live_page *page,
			  is_moved_function *is_moved, void *context)
{
	uint32_t n_moved = 0;

	for (uint32_t i = 0; i < page->n_buckets * BUCKET_SLOTS; i++) {
		struct live_bucket *bucket = &page->buckets[i / BUCKET_SLOTS];

		n_moved += torsh_bucket_has(bucket, i % BUCKET_SLOTS) &&
			   sift_slot(table, bucket, i % BUCKET_SLOTS, is_moved, context);
	}
	torsh_live_page_shrink(page, n_moved);
	return n_moved;
}

/* Addresses that no slot can hold. The map can't change while it is iterated over. */
static uint64_t sift_wide(struct live_table *table, is_moved_function *is_moved, void *context)
{
	uint64_t *moved = torsh_memory_new(table->wide.n, sizeof(*moved)), n = 0;
	const struct hash_entry *entry;
	struct live_block block;
	size_t at = 0;

	while ((entry = torsh_hash_map_next(&table->wide, &at))) {
		block = *block_of(entry);
		if (!torsh_slot_fits(block.address) && is_moved(context, &block))
			moved[n++] = block.address;
	}
	for (uint64_t i = 0; i < n; i++)
		take_wide(table, moved[i], &block);
	free(moved);
	return n;
}

void torsh_live_sift(struct live_table *table, is_moved_function *is_moved, void *context)
{
	uint64_t n = UINT64_C(1) << table->depth;

	table->latest.address = 0;
	for (uint64_t i = 0; i < n;) {
		struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		table->n_blocks -= sift_page(table, page, is_moved, context);
	}
	table->n_blocks -= sift_wide(table, is_moved, context);
}

uint64_t torsh_live_bytes(const struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth,
		 n_bytes = n * sizeof(table->directory[0]) + table->wide.n * WIDE_BYTES;

	for (uint64_t i = 0; i < n;) {
		const struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		n_bytes += sizeof(*page) + torsh_live_page_bytes(page->n_buckets);
	}
	return n_bytes;
}
