/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A model of PyTorch's caching allocator on one device, and one stream: which blocks it splits and
 * merges, and which segments it reserves from the device. It has addresses, but no memory.
 *
 * Sizes are rounded to 512 bytes. Up to 1 MiB come from the small pool, whose segments have 2 MiB,
 * the others from the large one: segments of 20 MiB for less than 10 MiB, else of the size rounded
 * to 2 MiB. The smallest free block that is large enough is taken, the first of equal ones; what it
 * has more is split off in the small pool, in the large one if it is more than 1 MiB. With
 * expandable segments each pool has one range of addresses, of which pages are mapped: of 2 MiB in
 * the small pool, of 20 MiB in the large one.
 */
#ifndef TORSH_MEMORY_ALLOCATOR_CACHING_ALLOCATOR_H
#define TORSH_MEMORY_ALLOCATOR_CACHING_ALLOCATOR_H

#include "tools/memory/allocator/allocator_settings.h"
#include "tools/memory/allocator/block_set.h"

#define ALLOCATOR_BYTES_MAX (UINT64_C(1) << 48) /* of a block: larger ones are out of memory */
#define ALLOCATOR_ADDRESS_MAX (UINT64_C(1) << 62) /* of all segments, released ones included */

struct allocator_pool {
	bool is_small;
	uint64_t page_bytes; /* of expandable segments */
	struct block_set free, unmapped;
	uint64_t n_searches;
};

struct caching_allocator {
	struct allocator_settings settings;
	uint64_t capacity_bytes; /* of the device; 0: without bounds */
	struct allocator_pool small, large;
	uint64_t reserved_bytes, allocated_bytes, reserved_peak_bytes, allocated_peak_bytes;
	uint64_t next_address; /* of the next segment */
	uint64_t missing_bytes; /* after a failure: what was needed beyond the capacity */
	struct allocator_block **made; /* all structs of blocks, used or not */
	size_t n_made, made_room;
	struct allocator_block *spare; /* unused ones, linked by next */
};

/* Begin without segments. */
void torsh_caching_allocator_create(struct caching_allocator *allocator,
				    const struct allocator_settings *settings,
				    uint64_t capacity_bytes);

/* Free the model. */
void torsh_caching_allocator_destroy(struct caching_allocator *allocator);

/*
 * Returns a block of at least so many bytes; NULL: out of memory, also after the cache was
 * released.
 */
struct allocator_block *torsh_caching_allocator_alloc(struct caching_allocator *allocator,
						      uint64_t bytes);

/* Free an allocated block. */
void torsh_caching_allocator_free(struct caching_allocator *allocator,
				  struct allocator_block *block);

/* Release the segments without an allocated block, as torch.cuda.empty_cache() does. */
void torsh_caching_allocator_release(struct caching_allocator *allocator);

/* Returns the largest size of at most so many bytes that a request is rounded to; bytes >= 512. */
uint64_t torsh_caching_allocator_round_down(const struct allocator_settings *settings,
					    uint64_t bytes);

#endif
