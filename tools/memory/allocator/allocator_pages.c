/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocator/allocator_pages.h"

/* Of one segment: more than a block. */
#define RANGE_BYTES (4 * ALLOCATOR_BYTES_MAX)

static uint64_t page_up(const struct allocator_pool *pool, uint64_t address)
{
	return (address + pool->page_bytes - 1) / pool->page_bytes * pool->page_bytes;
}

static uint64_t page_down(const struct allocator_pool *pool, uint64_t address)
{
	return address / pool->page_bytes * pool->page_bytes;
}

/* Whether free and unmapped blocks from here on have so many bytes together. */
static bool has_addresses(const struct allocator_block *block, uint64_t bytes)
{
	uint64_t sum = 0;

	for (; block && !block->is_allocated && sum < bytes; block = block->next)
		sum += block->size;
	return sum >= bytes;
}

/*
 * Returns the first free or unmapped block from which on there are enough addresses; NULL: there
 * are none. The pool gets its range when it needs the first page.
 */
static struct allocator_block *find_addresses(struct caching_allocator *allocator,
					      struct allocator_pool *pool, uint64_t bytes)
{
	struct allocator_block *block;

	for (size_t i = 0; i < pool->unmapped.n; i++) {
		block = pool->unmapped.items[i];
		if (block->previous && !block->previous->is_allocated)
			block = block->previous;
		if (has_addresses(block, bytes))
			return block;
	}
	if (allocator->next_address > ALLOCATOR_ADDRESS_MAX)
		return NULL;
	block = torsh_allocator_block_create(allocator, pool,
					     page_up(pool, allocator->next_address), RANGE_BYTES);
	allocator->next_address = block->address + RANGE_BYTES;
	block->is_expandable = true;
	block->is_mapped = false;
	torsh_block_set_add(&pool->unmapped, block);
	return block;
}

/*
 * Map the pages for the first bytes of an unmapped block. Returns the free block that has them,
 * merged with its neighbours; NULL: out of memory.
 */
static struct allocator_block *map(struct caching_allocator *allocator,
				   struct allocator_block *block, uint64_t bytes)
{
	struct allocator_pool *pool = block->pool;
	uint64_t size = page_up(pool, bytes < block->size ? bytes : block->size);

	if (!torsh_allocator_reserve(allocator, size))
		return NULL;
	torsh_block_set_remove(&pool->unmapped, block);
	if (size < block->size)
		torsh_block_set_add(&pool->unmapped,
				    torsh_allocator_block_split(allocator, block, size));
	block->is_mapped = true;
	torsh_allocator_block_keep(allocator, block);
	return block;
}

struct allocator_block *torsh_allocator_pages_take(struct caching_allocator *allocator,
						   struct allocator_pool *pool, uint64_t bytes)
{
	struct allocator_block *block = find_addresses(allocator, pool, bytes);

	if (block && !block->is_mapped)
		block = map(allocator, block, bytes);
	while (block && block->size < bytes)
		block = map(allocator, block->next, bytes - block->size);
	if (block)
		torsh_block_set_remove(&pool->free, block);
	return block;
}

static void unmap(struct caching_allocator *allocator, struct allocator_block *block)
{
	struct allocator_pool *pool = block->pool;
	uint64_t first = page_up(pool, block->address),
		 end = page_down(pool, block->address + block->size);

	if (first >= end)
		return;
	torsh_block_set_remove(&pool->free, block);
	if (first > block->address) {
		struct allocator_block *rest =
			torsh_allocator_block_split(allocator, block, first - block->address);

		torsh_block_set_add(&pool->free, block);
		block = rest;
	}
	if (end < block->address + block->size)
		torsh_block_set_add(&pool->free, torsh_allocator_block_split(allocator, block,
									     end - block->address));
	allocator->reserved_bytes -= end - first;
	block->is_mapped = false;
	torsh_allocator_block_keep(allocator, block);
}

void torsh_allocator_pages_release(struct caching_allocator *allocator, struct allocator_pool *pool)
{
	/* Unmapping can leave free rests, which are smaller than a page: nothing to unmap again. */
	for (size_t i = 0; i < pool->free.n;) {
		struct allocator_block *block = pool->free.items[i];
		uint64_t reserved = allocator->reserved_bytes;

		if (block->is_expandable)
			unmap(allocator, block);
		if (allocator->reserved_bytes == reserved)
			i++;
		else
			i = 0;
	}
}
