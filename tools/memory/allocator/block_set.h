/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Free or unmapped blocks of the allocator's model, in order: a sorted array, because there are few
 * beside the allocated ones.
 */
#ifndef TORSH_MEMORY_ALLOCATOR_BLOCK_SET_H
#define TORSH_MEMORY_ALLOCATOR_BLOCK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocator_pool;

/* A part of a segment. */
struct allocator_block {
	uint64_t address, size;
	struct allocator_block *previous, *next; /* of its segment, by address */
	struct allocator_pool *pool;
	bool is_allocated, is_expandable;
	bool is_mapped; /* always, unless it is expandable */
	uint64_t freed_at; /* the pool's number of searches then */
};

/* Blocks in order: by size and address, or by address alone. */
struct block_set {
	struct allocator_block **items;
	size_t n, n_room;
	bool is_by_size;
};

/* Returns the index of the first block that is not before this size and address; or set->n. */
size_t torsh_block_set_find(const struct block_set *set, uint64_t size, uint64_t address);

/* Add a block. */
void torsh_block_set_add(struct block_set *set, struct allocator_block *block);

/* Remove a block that the set has, before its size or address change. */
void torsh_block_set_remove(struct block_set *set, const struct allocator_block *block);

#endif
