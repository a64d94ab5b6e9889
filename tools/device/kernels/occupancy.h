/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How full a kernel can make a device at best: the warps that fit into a multiprocessor at a time,
 * of those that it has room for, and how often all multiprocessors must be filled for the whole
 * grid. From what the launch requested and the device reports for itself, by the rules of CUDA's
 * occupancy calculator for compute capabilities 7.0 to 12.x. Clusters and barriers, which can make
 * it less, are not looked at.
 */
#ifndef TORSH_DEVICE_KERNELS_OCCUPANCY_H
#define TORSH_DEVICE_KERNELS_OCCUPANCY_H

#include "agent/wire/event.h"

/* LIMIT(NAME, what there is no more of) */
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

#define OCCUPANCY_UNLIMITED INT32_MAX /* blocks take nothing of it; as CUDA's calculator has it */

struct occupancy {
	uint32_t blocks; /* on a multiprocessor at a time */
	/* how many there is enough of each for; blocks is the least */
	uint32_t blocks_by[N_OCCUPANCY_LIMITS];
	/* that a block is given, which is more than it requested */
	uint32_t block_registers, block_shared_bytes;
	uint32_t warps; /* the same in warps */
	double share; /* of the warps that a multiprocessor has room for: 0 to 1 */
	double waves; /* how often the grid fills the device */
	enum occupancy_limit limit;
};

/* Returns NULL, or why the occupancy is unknown. */
const char *torsh_occupancy_of(const struct event_device *device, const struct event_kernel *kernel,
			       struct occupancy *occupancy);

/* Maximum shared memory per block in bytes, for kernels that opt in; 0: unknown. */
uint64_t torsh_occupancy_shared_max(const struct event_device *device);

#endif
