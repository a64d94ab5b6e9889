/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/live_table.h"

#include <stdlib.h>

#include "tools/writer/memory.h"

#define FIRST_SLOTS 512u
#define DEPTH_MAX 16u /* bits 48 to 63 of the hash choose the page, 32 to 47 the slot */

struct live_page {
	struct live_block *slots;
	uint32_t mask;
	uint32_t n_blocks;
	uint32_t full_at; /* blocks at which it grows: five eighths */
	uint32_t depth; /* bits of the hash that all its blocks have in common */
};

static uint64_t hash_of(uint64_t address)
{
	return address * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t home_of(const struct live_page *page, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & page->mask;
}

/* Two shifts, for depth 0 would be one by 64. */
static uint64_t page_number(const struct live_table *table, uint64_t hash)
{
	return hash >> 1 >> (63 - table->depth);
}

static struct live_page *page_of(const struct live_table *table, uint64_t hash)
{
	return table->directory[page_number(table, hash)];
}

static void set_slots(struct live_page *page, uint32_t n_slots)
{
	page->slots = torsh_memory_table(n_slots, sizeof(*page->slots));
	page->mask = n_slots - 1;
	page->full_at = n_slots / 8 * 5;
}

static struct live_page *new_page(uint32_t n_slots, uint32_t depth)
{
	struct live_page *page = torsh_memory_new(1, sizeof(*page));

	set_slots(page, n_slots);
	page->depth = depth;
	return page;
}

void torsh_live_create(struct live_table *table)
{
	*table = (struct live_table){.directory = torsh_memory_new(1, sizeof(table->directory[0]))};
	table->directory[0] = new_page(FIRST_SLOTS, 0);
}

/* The directory's entries for one page stand together: the first one frees it. */
void torsh_live_destroy(struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth;

	for (uint64_t i = 0; i < n;) {
		struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		free(page->slots);
		free(page);
	}
	free(table->directory);
	*table = (struct live_table){0};
}

void torsh_live_prefetch(const struct live_table *table, uint64_t address)
{
	uint64_t hash = hash_of(address);
	const struct live_page *page = page_of(table, hash);

	__builtin_prefetch(&page->slots[home_of(page, hash)], 1);
}

/* The block's slot, or the empty one where it belongs. */
static struct live_block *slot_of(const struct live_page *page, uint64_t hash, uint64_t address)
{
	uint32_t i = home_of(page, hash);

	while (page->slots[i].address && page->slots[i].address != address)
		i = (i + 1) & page->mask;
	return &page->slots[i];
}

struct live_block *torsh_live_find(const struct live_table *table, uint64_t address)
{
	uint64_t hash = hash_of(address);
	struct live_block *block = slot_of(page_of(table, hash), hash, address);

	return block->address ? block : NULL;
}

static void put_block(struct live_page *page, const struct live_block *block)
{
	*slot_of(page, hash_of(block->address), block->address) = *block;
	page->n_blocks++;
}

static void double_page(struct live_page *page)
{
	struct live_block *old = page->slots;
	uint32_t n_old = page->mask + 1;

	set_slots(page, n_old * 2);
	page->n_blocks = 0;
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].address)
			put_block(page, &old[i]);
	}
	free(old);
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

/* Its blocks go to two new pages by one more bit of their hashes. */
static void split_page(struct live_table *table, struct live_page *page, uint64_t hash)
{
	struct live_page *halves[2];
	uint64_t n_entries, first;

	if (page->depth == table->depth)
		double_directory(table);
	n_entries = UINT64_C(1) << (table->depth - page->depth);
	first = page_number(table, hash) & ~(n_entries - 1);
	for (int i = 0; i < 2; i++)
		halves[i] = new_page(page->mask + 1, page->depth + 1);
	for (uint32_t i = 0; i <= page->mask; i++) {
		if (page->slots[i].address)
			put_block(halves[hash_of(page->slots[i].address) >> (63 - page->depth) & 1], &page->slots[i]);
	}
	for (uint64_t i = 0; i < n_entries; i++)
		table->directory[first + i] = halves[i >= n_entries / 2];
	free(page->slots);
	free(page);
}

struct live_block *torsh_live_add(struct live_table *table, uint64_t address, int *is_there)
{
	uint64_t hash = hash_of(address);
	struct live_page *page = page_of(table, hash);
	struct live_block *block = slot_of(page, hash, address);

	*is_there = block->address != 0;
	if (*is_there)
		return block;
	while (__builtin_expect(page->n_blocks >= page->full_at, 0)) {
		if (page->mask + 1 < LIVE_PAGE_SLOTS || page->depth == DEPTH_MAX)
			double_page(page);
		else
			split_page(table, page, hash);
		page = page_of(table, hash);
		block = slot_of(page, hash, address);
	}
	page->n_blocks++;
	table->n_blocks++;
	block->address = address;
	return block;
}

/* What was pushed past the gap moves back into it, so that no look-up stops too early. */
void torsh_live_remove(struct live_table *table, struct live_block *block)
{
	struct live_page *page = page_of(table, hash_of(block->address));
	uint32_t gap = (uint32_t)(block - page->slots), i = gap;

	for (;;) {
		i = (i + 1) & page->mask;
		if (!page->slots[i].address)
			break;
		if (((i - home_of(page, hash_of(page->slots[i].address))) & page->mask) >= ((i - gap) & page->mask)) {
			page->slots[gap] = page->slots[i];
			gap = i;
		}
	}
	page->slots[gap].address = 0;
	page->n_blocks--;
	table->n_blocks--;
}

struct live_block *torsh_live_next(const struct live_table *table, uint64_t *at)
{
	/* The upper half of *at is the directory's entry, the lower the slot. */
	uint64_t entry = *at >> 32, slot = (uint32_t)*at;

	while (entry < UINT64_C(1) << table->depth) {
		struct live_page *page = table->directory[entry];

		for (; slot <= page->mask; slot++) {
			if (page->slots[slot].address) {
				*at = entry << 32 | (slot + 1);
				return &page->slots[slot];
			}
		}
		slot = 0;
		entry += UINT64_C(1) << (table->depth - page->depth);
	}
	*at = entry << 32;
	return NULL;
}
