/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The free parts of a range of numbers, ordered and never touching each other: device memory by
 * offset. Guarded by the engine's lock.
 */
#ifndef SIMCUDA_EXTENTS_H
#define SIMCUDA_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_extent {
	uint64_t offset, bytes;
};

struct sim_extents {
	struct sim_extent *parts;
	size_t n, capacity;
	uint64_t free_bytes;
};

/* Make a part free that was not. */
void sim_extents_give(struct sim_extents *extents, uint64_t offset, uint64_t bytes);

/*
 * Take the first part that is large enough; alignment is a power of two. Returns false where there
 * is none.
 */
bool sim_extents_take(struct sim_extents *extents, uint64_t bytes, uint64_t alignment,
		      uint64_t *offset);

void sim_extents_clear(struct sim_extents *extents);

#endif
