/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which addresses belong to allocators: what is there outside of live blocks is free, or the
 * allocator's own, and no root.
 */
#ifndef TORSH_WRITER_REACHABILITY_HEAP_RANGES_H
#define TORSH_WRITER_REACHABILITY_HEAP_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"

struct heap_range {
	uint64_t begin, end;
};

struct heap_ranges {
	struct heap_range *items; /* in order, apart from each other */
	uint32_t n;
	size_t capacity;
};

/* glibc's arenas but the main one have heaps that begin at multiples of this. */
#define HEAP_ARENA_BYTES (UINT64_C(64) << 20)

/* Returns whether the heap of such an arena begins there. */
bool torsh_heap_is_arena(const struct memory_reader *reader, uint64_t at);

/*
 * Find them from the blocks: what brk grows, glibc's other arenas, and the pages of all other
 * blocks. Free with torsh_heap_ranges_free.
 */
void torsh_heap_ranges_find(struct heap_ranges *ranges, const struct memory_areas *areas,
			    const struct block_index *index, const struct memory_reader *reader);

/* Add a range in any order; torsh_heap_ranges_sort is called after the last. */
void torsh_heap_ranges_add(struct heap_ranges *ranges, uint64_t begin, uint64_t end);

/* Put them in order, and join those that touch. */
void torsh_heap_ranges_sort(struct heap_ranges *ranges);

/* Free the ranges. */
void torsh_heap_ranges_free(struct heap_ranges *ranges);

/* Returns the number of the first range that ends behind the address; n if there is none. */
uint32_t torsh_heap_ranges_from(const struct heap_ranges *ranges, uint64_t address);

#endif
