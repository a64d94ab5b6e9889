/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Expandable segments of the allocator's model: a range of addresses of which pages are mapped as
 * they are needed. What caching_allocator.c and allocator_pages.c share.
 */
#ifndef TORSH_MEMORY_ALLOCATOR_ALLOCATOR_PAGES_H
#define TORSH_MEMORY_ALLOCATOR_ALLOCATOR_PAGES_H

#include "tools/memory/allocator/caching_allocator.h"

/* Returns a mapped block of at least so many bytes, in no set; NULL: out of memory. */
struct allocator_block *torsh_allocator_pages_take(struct caching_allocator *allocator,
						   struct allocator_pool *pool, uint64_t bytes);

/* Unmap the pages of the pool that only free blocks use. */
void torsh_allocator_pages_release(struct caching_allocator *allocator,
				   struct allocator_pool *pool);

/* Returns a new block, linked to no other and in no set. */
struct allocator_block *torsh_allocator_block_create(struct caching_allocator *allocator,
						     struct allocator_pool *pool, uint64_t address,
						     uint64_t size);

/* Unlink a block and free its struct. */
void torsh_allocator_block_drop(struct caching_allocator *allocator, struct allocator_block *block);

/* Returns what the block has beyond a size, as a block of its own in no set. */
struct allocator_block *torsh_allocator_block_split(struct caching_allocator *allocator,
						    struct allocator_block *block, uint64_t size);

/* Merge a free or unmapped block with its neighbours, and add it to the set of its state. */
void torsh_allocator_block_keep(struct caching_allocator *allocator, struct allocator_block *block);

/* Count bytes as reserved; returns false if the device doesn't have them. */
bool torsh_allocator_reserve(struct caching_allocator *allocator, uint64_t bytes);

#endif
