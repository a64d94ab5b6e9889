/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A kernel's theoretical occupancy: the warps that fit into a multiprocessor at a time, as a share
 * of its maximum, and how often the grid fills all multiprocessors. Computed from the launch
 * parameters and the device's reported properties, by the rules of CUDA's occupancy calculator for
 * compute capabilities 7.0 to 12.x. Clusters and barriers, which may reduce it, are ignored.
 */
#ifndef TORSH_DEVICE_KERNELS_OCCUPANCY_H
#define TORSH_DEVICE_KERNELS_OCCUPANCY_H

#include "agent/wire/event.h"

/* LIMIT(NAME, the resource that limits the number of blocks) */
#define OCCUPANCY_LIMITS            \
	LIMIT(WARPS, warps)         \
	LIMIT(BLOCKS, blocks)       \
	LIMIT(REGISTERS, registers) \
	LIMIT(SHARED, shared_memory)

enum occupancy_limit {
#define LIMIT(NAME, name) OCCUPANCY_##NAME,
	OCCUPANCY_LIMITS
#undef LIMIT
		N_OCCUPANCY_LIMITS
};

extern const char *const torsh_occupancy_limit_names[N_OCCUPANCY_LIMITS];

#define OCCUPANCY_UNLIMITED INT32_MAX /* blocks use none of it; the value of CUDA's calculator */

struct occupancy {
	uint32_t blocks; /* resident on a multiprocessor at a time */
	/* how many each resource allows; blocks is the minimum */
	uint32_t blocks_by[N_OCCUPANCY_LIMITS];
	/* allocated per block, which is more than it requested */
	uint32_t block_registers, block_shared_bytes;
	uint32_t warps; /* likewise in warps */
	double share; /* of the warps that fit into a multiprocessor: 0 to 1 */
	double waves; /* how often the grid fills the device */
	enum occupancy_limit limit;
};

/* Returns NULL, or why the occupancy is unknown. */
const char *torsh_occupancy_of(const struct event_device *device, const struct event_kernel *kernel,
			       struct occupancy *occupancy);

/* Returns the maximum shared memory per block in bytes, for kernels that opt in; 0: unknown. */
uint64_t torsh_occupancy_shared_max(const struct event_device *device);

#endif
