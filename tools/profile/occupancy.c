/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/occupancy.h. */
#include "tools/profile/occupancy.h"

#include <stddef.h>

#define FIRST_MAJOR 7u
#define LAST_MAJOR 12u

/* The same for all of these capabilities. */
#define PARTITIONS 4u /* of a multiprocessor, which share out its registers */
#define REGISTER_UNIT 256u /* registers are given to warps in so many at a time */

const char *const torsh_occupancy_limit_names[N_OCCUPANCY_LIMITS] = {
#define LIMIT(NAME, name) #name,
	OCCUPANCY_LIMITS
#undef LIMIT
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* How many blocks the registers of a multiprocessor are enough for. */
static uint64_t blocks_by_registers(const struct event_device *device, uint32_t registers, uint64_t block_warps)
{
	uint64_t warp_registers = round_up((uint64_t)registers * device->warp_threads, REGISTER_UNIT);

	if (!warp_registers)
		return UINT64_MAX;
	return device->multiprocessor_registers / PARTITIONS / warp_registers * PARTITIONS / block_warps;
}

/* From 8.0 on the driver keeps a part of each block's shared memory for itself. */
static uint64_t blocks_by_shared(const struct event_device *device, const struct event_kernel *kernel)
{
	uint32_t reserved = device->capability_major >= 8 ? 1024 : 0, unit = device->capability_major >= 8 ? 128 : 256;
	uint64_t bytes =
		round_up((uint64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes + reserved, unit);

	return bytes ? device->multiprocessor_shared_bytes / bytes : UINT64_MAX;
}

static const char *why_not(const struct event_device *device, const struct event_kernel *kernel)
{
	if (!device->multiprocessors || !device->warp_threads || !device->multiprocessor_warps ||
	    !device->multiprocessor_registers || !device->multiprocessor_blocks)
		return "the device did not say what it has";
	if (device->capability_major < FIRST_MAJOR || device->capability_major > LAST_MAJOR)
		return "the rules for this compute capability are not known";
	if (!kernel->block_x || !kernel->block_y || !kernel->block_z)
		return "the size of its blocks is not known";
	return NULL;
}

const char *torsh_occupancy_of(const struct event_device *device, const struct event_kernel *kernel,
			       struct occupancy *occupancy)
{
	uint64_t threads = (uint64_t)kernel->block_x * kernel->block_y * kernel->block_z, block_warps, grid;
	uint64_t blocks[N_OCCUPANCY_LIMITS];
	enum occupancy_limit limit = OCCUPANCY_WARPS;
	const char *reason = why_not(device, kernel);

	if (reason)
		return reason;
	block_warps = round_up(threads, device->warp_threads) / device->warp_threads;
	blocks[OCCUPANCY_WARPS] = device->multiprocessor_warps / block_warps;
	blocks[OCCUPANCY_BLOCKS] = device->multiprocessor_blocks;
	blocks[OCCUPANCY_REGISTERS] = blocks_by_registers(device, kernel->registers, block_warps);
	blocks[OCCUPANCY_SHARED] = blocks_by_shared(device, kernel);
	for (int i = 0; i < N_OCCUPANCY_LIMITS; i++)
		limit = blocks[i] < blocks[limit] ? (enum occupancy_limit)i : limit;
	if (!blocks[limit])
		return "by the rules its blocks don't fit";
	grid = (uint64_t)kernel->grid_x * kernel->grid_y * kernel->grid_z;
	*occupancy = (struct occupancy){
		.blocks = (uint32_t)blocks[limit],
		.warps = (uint32_t)(blocks[limit] * block_warps),
		.share = (double)(blocks[limit] * block_warps) / device->multiprocessor_warps,
		.waves = (double)grid / ((double)blocks[limit] * device->multiprocessors),
		.limit = limit,
	};
	return NULL;
}
