/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/occupancy.h"

#include <stdbool.h>
#include <stddef.h>

#define FIRST_MAJOR 7u
#define LAST_MAJOR 12u

/* Equal for all of these capabilities. */
#define PARTITIONS 4u /* per multiprocessor; they share its registers */
#define REGISTER_UNIT 256u /* granularity in which registers are allocated to a warp */

/* From compute capability 8.0 on. */
#define FIRST_RESERVING_MAJOR 8u
#define RESERVED_SHARED_BYTES 1024u /* of each block's shared memory, reserved by the driver */

const char *const torsh_occupancy_limit_names[N_OCCUPANCY_LIMITS] = {
#define LIMIT(NAME, name) #name,
	OCCUPANCY_LIMITS
#undef LIMIT
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static uint64_t warp_registers(const struct event_device *device, uint32_t registers)
{
	return round_up((uint64_t)registers * device->warp_threads, REGISTER_UNIT);
}

/* Returns the number of blocks that the registers of a multiprocessor allow. */
static uint64_t blocks_by_registers(const struct event_device *device, uint32_t registers,
				    uint64_t block_warps)
{
	if (!registers)
		return OCCUPANCY_UNLIMITED;
	return device->multiprocessor_registers / PARTITIONS / warp_registers(device, registers) *
	       PARTITIONS / block_warps;
}

static uint64_t reserved_shared(const struct event_device *device)
{
	return device->capability_major >= FIRST_RESERVING_MAJOR ? RESERVED_SHARED_BYTES : 0;
}

static uint64_t block_shared(const struct event_device *device, const struct event_kernel *kernel)
{
	uint32_t unit = device->capability_major >= FIRST_RESERVING_MAJOR ? 128 : 256;

	return round_up((uint64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes +
				reserved_shared(device),
			unit);
}

static uint64_t blocks_by_shared(const struct event_device *device, uint64_t block_bytes)
{
	return block_bytes ? device->multiprocessor_shared_bytes / block_bytes
			   : OCCUPANCY_UNLIMITED;
}

static bool has_rules(const struct event_device *device)
{
	return device->capability_major >= FIRST_MAJOR && device->capability_major <= LAST_MAJOR;
}

uint64_t torsh_occupancy_shared_max(const struct event_device *device)
{
	if (!has_rules(device) || device->multiprocessor_shared_bytes <= reserved_shared(device))
		return 0;
	return device->multiprocessor_shared_bytes - reserved_shared(device);
}

static const char *why_not(const struct event_device *device, const struct event_kernel *kernel)
{
	if (!device->multiprocessors || !device->warp_threads || !device->multiprocessor_warps ||
	    !device->multiprocessor_registers || !device->multiprocessor_blocks)
		return "the device did not report its resources";
	if (!has_rules(device))
		return "the rules for this compute capability are not known";
	if (!kernel->block_x || !kernel->block_y || !kernel->block_z)
		return "the size of its blocks is not known";
	return NULL;
}

/* Returns the threads per block; more than UINT32_MAX is invalid, and saturates. */
static uint64_t count_threads(const struct event_kernel *kernel)
{
	uint64_t n = (uint64_t)kernel->block_x * kernel->block_y;

	n = (n < UINT32_MAX ? n : UINT32_MAX) * kernel->block_z;
	return n < UINT32_MAX ? n : UINT32_MAX;
}

const char *torsh_occupancy_of(const struct event_device *device, const struct event_kernel *kernel,
			       struct occupancy *occupancy)
{
	double grid = (double)kernel->grid_x * kernel->grid_y * kernel->grid_z;
	uint64_t block_warps;
	uint64_t blocks[N_OCCUPANCY_LIMITS], shared_bytes = block_shared(device, kernel);
	enum occupancy_limit limit = OCCUPANCY_WARPS;
	const char *reason = why_not(device, kernel);

	if (reason)
		return reason;
	block_warps = round_up(count_threads(kernel), device->warp_threads) / device->warp_threads;
	blocks[OCCUPANCY_WARPS] = device->multiprocessor_warps / block_warps;
	blocks[OCCUPANCY_BLOCKS] = device->multiprocessor_blocks;
	blocks[OCCUPANCY_REGISTERS] = blocks_by_registers(device, kernel->registers, block_warps);
	blocks[OCCUPANCY_SHARED] = blocks_by_shared(device, shared_bytes);
	for (int i = 0; i < N_OCCUPANCY_LIMITS; i++)
		limit = blocks[i] < blocks[limit] ? (enum occupancy_limit)i : limit;
	if (!blocks[limit])
		return "by the rules its blocks don't fit";
	*occupancy = (struct occupancy){
		.blocks = (uint32_t)blocks[limit],
		.warps = (uint32_t)(blocks[limit] * block_warps),
		.share = (double)(blocks[limit] * block_warps) / device->multiprocessor_warps,
		.waves = grid / ((double)blocks[limit] * device->multiprocessors),
		.limit = limit,
		.block_registers =
			(uint32_t)(warp_registers(device, kernel->registers) * block_warps),
		.block_shared_bytes = (uint32_t)shared_bytes,
	};
	for (int i = 0; i < N_OCCUPANCY_LIMITS; i++)
		occupancy->blocks_by[i] = (uint32_t)blocks[i];
	return NULL;
}
