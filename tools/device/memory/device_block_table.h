/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of struct device_blocks under its events: which block an address, a handle or an array
 * names, and what the blocks of a scope add up to. For device_blocks.c and free_blocks.c, which
 * reads the ranges.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_BLOCK_TABLE_H
#define TORSH_DEVICE_MEMORY_DEVICE_BLOCK_TABLE_H

#include "tools/device/memory/device_blocks.h"

/* The kind of an event's number. */
enum space { SPACE_ADDRESS, SPACE_HANDLE, SPACE_ARRAY, N_SPACES };

/* Returns the space that a block of this kind (enum device_block_kind) has its number in. */
enum space torsh_device_space(uint32_t kind);

/*
 * Returns the first range of a space that overlaps [start, end), or NULL. Its owner is the number
 * of a block; it is valid until ranges change.
 */
const struct address_range *torsh_device_blocks_find(const struct device_blocks *blocks,
						     enum space space, uint64_t start,
						     uint64_t end);

/* Add a name for the block range->owner, which counts the reference already. */
void torsh_device_blocks_add_range(struct device_blocks *blocks, enum space space,
				   const struct address_range *range);

/* Remove a name. The last one ends its block. */
void torsh_device_blocks_drop(struct device_blocks *blocks, enum space space,
			      const struct address_range *range);

/*
 * End what lives in [begin, end), where something new was allocated: its free was not recorded.
 * Each name counts as an implicit free.
 */
void torsh_device_blocks_end_overlapped(struct device_blocks *blocks, enum space space,
					uint64_t begin, uint64_t end);

/* Add a live block, a copy. Returns its number. */
uint32_t torsh_device_blocks_put(struct device_blocks *blocks, const struct device_block *block);

/* Returns the latest unused number, or else *n, which grows by one. */
uint32_t torsh_device_blocks_number(uint32_t *unused, size_t *n_unused, size_t *n);

#endif
