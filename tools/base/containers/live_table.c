/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/live_table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/memory.h"

#define FIRST_SLOTS 512u
#define STEP_SLOTS (1u << 16) /* what a large page grows by: one huge page of the kernel */
#define DEPTH_MAX 16u
#define LINE_SLOTS 2u
#define PAST_MAX 255u /* the largest live_block.n_past, which then stays until the page grows */

struct live_page {
	struct live_block *slots; /* LINE_SLOTS per line */
	uint32_t n_lines;
	uint32_t n_blocks;
	uint32_t full_at; /* number of blocks at which it grows: seven eighths */
	uint32_t depth; /* number of hash bits that all its blocks share */
	/* Slots that fit into its memory; from STEP_SLOTS on untouched ones cost nothing. */
	uint32_t n_room;
};

static uint64_t hash_of(uint64_t address)
{
	return address * UINT64_C(0x9e3779b97f4a7c15);
}

/*
 * The line where a block belongs, in the order of hashes: when a page grows, blocks move up one
 * after another, and a split moves the upper half to the other page.
 */
static uint32_t home_of(const struct live_page *page, uint64_t hash)
{
	return (uint32_t)((unsigned __int128)(hash << page->depth) * page->n_lines >> 64);
}

static uint32_t line_after(const struct live_page *page, uint32_t line)
{
	return __builtin_expect(line + 1 == page->n_lines, 0) ? 0 : line + 1;
}

static struct live_block *line_at(const struct live_page *page, uint32_t line)
{
	return &page->slots[line * LINE_SLOTS];
}

static uint32_t n_slots(const struct live_page *page)
{
	return page->n_lines * LINE_SLOTS;
}

/* Two shifts, because a shift by 64, which depth 0 would need, is undefined. */
static uint64_t page_number(const struct live_table *table, uint64_t hash)
{
	return hash >> 1 >> (63 - table->depth);
}

static struct live_page *page_of(const struct live_table *table, uint64_t hash)
{
	return table->directory[page_number(table, hash)];
}

static void set_size(struct live_page *page, uint32_t n)
{
	page->n_lines = n / LINE_SLOTS;
	page->full_at = n / 8 * 7;
}

static size_t bytes_of(uint32_t n)
{
	return (size_t)n * sizeof(struct live_block);
}

/* Empty n slots. */
static void set_slots(struct live_page *page, uint32_t n)
{
	if (n < STEP_SLOTS) {
		page->n_room = n;
		page->slots = torsh_memory_lines(n, sizeof(*page->slots));
	} else {
		page->n_room = n < LIVE_PAGE_SLOTS ? LIVE_PAGE_SLOTS : 2 * n;
		page->slots = torsh_memory_region(bytes_of(page->n_room));
	}
	set_size(page, n);
}

static void free_slots(struct live_block *slots, uint32_t n_room)
{
	if (n_room < STEP_SLOTS)
		free(slots);
	else
		torsh_memory_region_free(slots, bytes_of(n_room));
}

static struct live_page *new_page(uint32_t n, uint32_t depth)
{
	struct live_page *page = torsh_memory_new(1, sizeof(*page));

	set_slots(page, n);
	page->depth = depth;
	return page;
}

void torsh_live_create(struct live_table *table)
{
	*table = (struct live_table){.directory = torsh_memory_new(1, sizeof(table->directory[0]))};
	table->directory[0] = new_page(FIRST_SLOTS, 0);
}

/* The directory's entries for one page are adjacent: the first one frees it. */
void torsh_live_destroy(struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth;

	for (uint64_t i = 0; i < n;) {
		struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		free_slots(page->slots, page->n_room);
		free(page);
	}
	free(table->directory);
	*table = (struct live_table){0};
}

void torsh_live_prefetch(const struct live_table *table, uint64_t address)
{
	uint64_t hash = hash_of(address);
	const struct live_page *page = page_of(table, hash);

	__builtin_prefetch(line_at(page, home_of(page, hash)), 1);
}

/*
 * Returns the block at an address, or NULL. The search past n_past wraps around to its first line
 * and ends there, because hostile addresses can set n_past everywhere.
 */
static inline struct live_block *find_block(const struct live_page *page, uint64_t hash,
					    uint64_t address)
{
	uint32_t home = home_of(page, hash), i = home;

	do {
		struct live_block *line = line_at(page, i),
				  *found = &line[line[1].address == address];

		if (__builtin_expect(found->address == address, 1))
			return found;
		if (__builtin_expect(!line[0].n_past, 1))
			return NULL;
		i = line_after(page, i);
	} while (i != home);
	return NULL;
}

/* Returns an empty slot for a new block; marks the full lines that were skipped. */
static inline struct live_block *take_slot(struct live_page *page, uint64_t hash)
{
	uint32_t i = home_of(page, hash);

	page->n_blocks++;
	for (;;) {
		struct live_block *line = line_at(page, i), *slot = &line[line[0].address != 0];

		if (__builtin_expect(!slot->address, 1))
			return slot;
		line[0].n_past += line[0].n_past < PAST_MAX;
		i = line_after(page, i);
	}
}

struct live_block *torsh_live_find(const struct live_table *table, uint64_t address)
{
	uint64_t hash = hash_of(address);

	return find_block(page_of(table, hash), hash, address);
}

static void put_block(struct live_page *page, const struct live_block *block)
{
	torsh_live_copy(take_slot(page, hash_of(block->address)), block);
}

/*
 * Move a block up, out of the line `least`, while its page is spread. Blocks above are already in
 * place. Only past the page's last line it may take a slot that is looked at again; then it counts
 * twice in n_past.
 */
static void put_above(struct live_page *page, const struct live_block *block, uint32_t least)
{
	uint32_t home = home_of(page, hash_of(block->address)), i = home;

	for (;;) {
		struct live_block *line = line_at(page, i), *slot = &line[line[0].address != 0];

		if (!slot->address && (i >= least || i < home)) {
			torsh_live_copy(slot, block);
			return;
		}
		line[0].n_past += line[0].n_past < PAST_MAX;
		i = line_after(page, i);
	}
}

/*
 * Spread the blocks of n_old lines over the page's new, larger number of lines: each stays where
 * it is or moves up.
 */
static void spread(struct live_page *page, uint32_t n_old)
{
	for (uint32_t i = 0; i < n_old; i++)
		line_at(page, i)->n_past = 0;
	for (uint32_t i = n_old; i-- > 0;) {
		struct live_block *line = line_at(page, i);

		for (uint32_t k = 0; k < LINE_SLOTS; k++) {
			struct live_block block = line[k];

			if (!block.address)
				continue;
			line[k].address = 0;
			put_above(page, &block, i);
		}
	}
}

/* Move the page's slots into an allocation of their own with n slots. */
static void move_page(struct live_page *page, uint32_t n)
{
	struct live_block *old = page->slots;
	uint32_t n_old = n_slots(page), n_old_room = page->n_room;

	set_slots(page, n);
	page->n_blocks = 0;
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].address)
			put_block(page, &old[i]);
	}
	free_slots(old, n_old_room);
}

static uint32_t larger(uint32_t n)
{
	return n < STEP_SLOTS ? n * 2 : n + STEP_SLOTS;
}

static void enlarge_page(struct live_page *page)
{
	uint32_t n_old = n_slots(page), n = larger(n_old);

	if (n > page->n_room) {
		move_page(page, n);
		return;
	}
	set_size(page, n);
	spread(page, n_old / LINE_SLOTS);
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

/* Blocks with the next hash bit set move to the other page, which is empty and half as large. */
static void halve_page(struct live_page *page, struct live_page *upper)
{
	uint32_t n = n_slots(page), shift = 63 - page->depth;

	for (uint32_t i = 0; i < n; i++) {
		struct live_block *block = &page->slots[i];

		if (!block->address || !(hash_of(block->address) >> shift & 1))
			continue;
		put_block(upper, block);
		block->address = 0;
		page->n_blocks--;
	}
	page->depth++;
	set_size(page, n / 2);
	/* Blocks past the half's last line now follow it from the start of the page. */
	for (uint32_t i = n / 2; i < n; i++) {
		if (!page->slots[i].address)
			continue;
		page->n_blocks--;
		put_block(page, &page->slots[i]);
	}
	torsh_memory_region_empty(&page->slots[n / 2], bytes_of(n / 2));
}

static void split_page(struct live_table *table, struct live_page *page, uint64_t hash)
{
	struct live_page *upper = new_page(n_slots(page) / 2, page->depth + 1);
	uint64_t n_entries, first;

	if (page->depth == table->depth)
		double_directory(table);
	n_entries = UINT64_C(1) << (table->depth - page->depth);
	first = page_number(table, hash) & ~(n_entries - 1);
	halve_page(page, upper);
	for (uint64_t i = n_entries / 2; i < n_entries; i++)
		table->directory[first + i] = upper;
}

/* Split or enlarge the page of the hash. Not inlined, because it is rare. */
static __attribute__((noinline)) struct live_page *grow(struct live_table *table,
							struct live_page *page, uint64_t hash)
{
	while (page->n_blocks >= page->full_at) {
		if (n_slots(page) < LIVE_PAGE_SLOTS || page->depth == DEPTH_MAX)
			enlarge_page(page);
		else
			split_page(table, page, hash);
		page = page_of(table, hash);
	}
	return page;
}

struct live_block *torsh_live_add(struct live_table *table, uint64_t address, bool *is_there)
{
	uint64_t hash = hash_of(address);
	struct live_page *page = page_of(table, hash);
	struct live_block *block = find_block(page, hash, address);

	*is_there = block != NULL;
	if (__builtin_expect(block != NULL, 0))
		return block;
	if (__builtin_expect(page->n_blocks >= page->full_at, 0))
		page = grow(table, page, hash);
	block = take_slot(page, hash);
	block->address = address;
	table->n_blocks++;
	return block;
}

void torsh_live_remove(struct live_table *table, struct live_block *block)
{
	uint64_t hash = hash_of(block->address);
	struct live_page *page = page_of(table, hash);
	uint32_t line = (uint32_t)(block - page->slots) / LINE_SLOTS;

	for (uint32_t i = home_of(page, hash); __builtin_expect(i != line, 0);
	     i = line_after(page, i))
		line_at(page, i)->n_past -= line_at(page, i)->n_past < PAST_MAX;
	block->address = 0;
	page->n_blocks--;
	table->n_blocks--;
}

struct live_block *torsh_live_next(const struct live_table *table, uint64_t *at)
{
	/* The upper half of *at is the directory's entry, the lower half the slot. */
	uint64_t entry = *at >> 32, slot = (uint32_t)*at;

	while (entry < UINT64_C(1) << table->depth) {
		struct live_page *page = table->directory[entry];

		for (; slot < n_slots(page); slot++) {
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

/* Returns the number of blocks removed. */
static uint32_t sift_page(struct live_page *page,
			  bool (*is_moved)(void *, const struct live_block *), void *context)
{
	uint32_t n_moved = 0, n = FIRST_SLOTS;

	for (uint32_t i = 0; i < n_slots(page); i++) {
		struct live_block *block = &page->slots[i];

		if (!block->address || !is_moved(context, block))
			continue;
		block->address = 0;
		n_moved++;
	}
	while (n / 8 * 7 <= page->n_blocks - n_moved)
		n = larger(n);
	/* Also if the page keeps its size: n_past still counts removed blocks. */
	if (n_moved)
		move_page(page, n);
	return n_moved;
}

void torsh_live_sift(struct live_table *table, bool (*is_moved)(void *, const struct live_block *),
		     void *context)
{
	uint64_t n = UINT64_C(1) << table->depth;

	for (uint64_t i = 0; i < n;) {
		struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		table->n_blocks -= sift_page(page, is_moved, context);
	}
}

uint64_t torsh_live_bytes(const struct live_table *table)
{
	uint64_t n = UINT64_C(1) << table->depth, n_bytes = n * sizeof(table->directory[0]);

	for (uint64_t i = 0; i < n;) {
		const struct live_page *page = table->directory[i];

		i += UINT64_C(1) << (table->depth - page->depth);
		n_bytes += sizeof(*page) + n_slots(page) * sizeof(page->slots[0]);
	}
	return n_bytes;
}

uint32_t torsh_live_large_excess(uint64_t size, uint64_t usable)
{
	uint64_t n_pages = usable / LIVE_PAGE_BYTES - size / LIVE_PAGE_BYTES;

	if (usable < size || usable % LIVE_PAGE_BYTES ||
	    n_pages >= LIVE_EXCESS_UNKNOWN - LIVE_EXCESS_PAGES)
		return LIVE_EXCESS_UNKNOWN;
	return LIVE_EXCESS_PAGES + (uint32_t)n_pages;
}
