/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The addresses of the live sampled blocks of this process. A filter of counters answers for most
 * other blocks with one load: it has a byte for each 16 bytes of address space, folded, so that
 * blocks that are neighbours share its cache lines. What passes it is looked up in an exact set.
 * Lock-free, async-signal-safe; a forked child inherits a copy.
 */
#ifndef TORSH_COLLECTORS_HEAP_SAMPLED_BLOCKS_H
#define TORSH_COLLECTORS_HEAP_SAMPLED_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLED_FILTER_BITS 18

/* Pages, mapped for the first sample: a program without samples has no use for them. */
extern _Atomic uint8_t *_Atomic torsh_sampled_filter __attribute__((visibility("hidden")));

static inline uint32_t torsh_sampled_filter_index(const void *block)
{
	uintptr_t granule = (uintptr_t)block >> 4;

	return (uint32_t)(granule ^ granule >> SAMPLED_FILTER_BITS) &
	       ((1u << SAMPLED_FILTER_BITS) - 1);
}

/* False: the block is not sampled. */
static inline bool torsh_sampled_blocks_may_have(const void *block)
{
	/* Pairs with the release that published the pages. */
	const _Atomic uint8_t *filter =
		atomic_load_explicit(&torsh_sampled_filter, memory_order_acquire);

	return filter && atomic_load_explicit(&filter[torsh_sampled_filter_index(block)],
					      memory_order_relaxed) != 0;
}

/* Add a block, which is not in the set. Returns false without memory. */
bool torsh_sampled_blocks_add(const void *block);

/* Returns whether the block is in the set. */
bool torsh_sampled_blocks_have(const void *block);

/* Remove the block. Returns false if it is not in the set. */
bool torsh_sampled_blocks_remove(const void *block);

#endif
