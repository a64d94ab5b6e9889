/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A kernel's launch parameters, as in the args of Kineto's kernels: registers, shared memory, grid
 * and block; and, if the device's properties are recorded, the blocks and warps per
 * multiprocessor, and the occupancy.
 *
 * The text is cached, because a program has few distinct launches.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"
#include "tools/export/chrome/chrome.h"

/* more than the distinct launches of a training; on a collision the text is made again */
#define KEPT_TEXTS 1024u
#define WARP_THREADS 32u /* as in Kineto, for all devices */

/* The launch parameters that the text depends on. */
struct shape {
	const struct recorded_process *process;
	uint32_t device, registers, static_shared_bytes, dynamic_shared_bytes;
	uint32_t grid[3], block[3];
};

struct kept_text {
	struct shape shape;
	char *members;
};

struct chrome_kernels {
	struct sparse_array strings; /* of struct kept_text, indexed by hash */
};

static uint64_t hash_of(const struct shape *shape)
{
	uint64_t hash = (uint64_t)(uintptr_t)shape->process;
	const uint32_t numbers[] = {shape->device,
				    shape->registers,
				    shape->static_shared_bytes,
				    shape->dynamic_shared_bytes,
				    shape->grid[0],
				    shape->grid[1],
				    shape->grid[2],
				    shape->block[0],
				    shape->block[1],
				    shape->block[2]};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		hash = (hash ^ numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return hash >> 32;
}

static bool is_same(const struct shape *a, const struct shape *b)
{
	return a->process == b->process && a->device == b->device && a->registers == b->registers &&
	       a->static_shared_bytes == b->static_shared_bytes &&
	       a->dynamic_shared_bytes == b->dynamic_shared_bytes &&
	       memcmp(a->grid, b->grid, sizeof(a->grid)) == 0 &&
	       memcmp(a->block, b->block, sizeof(a->block)) == 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static float product(const uint32_t *three)
{
	return (float)((double)three[0] * three[1] * three[2]);
}

/* Put "WARPS|REGS": the resources that limit occupancy. */
static void put_limits(struct json_writer *json, const struct occupancy *occupancy)
{
	static const char *const names[N_OCCUPANCY_LIMITS] = {
		[OCCUPANCY_WARPS] = "WARPS",
		[OCCUPANCY_REGISTERS] = "REGS",
		[OCCUPANCY_SHARED] = "SMEM",
		[OCCUPANCY_BLOCKS] = "BLOCKS",
	};
	static const enum occupancy_limit order[] = {OCCUPANCY_WARPS, OCCUPANCY_REGISTERS,
						     OCCUPANCY_SHARED, OCCUPANCY_BLOCKS};
	const char *separator = "";

	torsh_json_begin_text(json, "limitingFactors");
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (occupancy->blocks_by[order[i]] != occupancy->blocks)
			continue;
		torsh_json_add_text(json, separator);
		torsh_json_add_text(json, names[order[i]]);
		separator = "|";
	}
	torsh_json_end_text(json);
}

/* Barriers are unknown, and Kineto ignores them too. */
static void put_occupancy(struct json_writer *json, const struct occupancy *occupancy)
{
	torsh_json_begin_object(json, "occupancy");
	torsh_json_put_u64(json, "activeBlocksPerMultiprocessor", occupancy->blocks);
	put_limits(json, occupancy);
	torsh_json_put_u64(json, "blockLimitRegs", occupancy->blocks_by[OCCUPANCY_REGISTERS]);
	torsh_json_put_u64(json, "blockLimitSharedMem", occupancy->blocks_by[OCCUPANCY_SHARED]);
	torsh_json_put_u64(json, "blockLimitWarps", occupancy->blocks_by[OCCUPANCY_WARPS]);
	torsh_json_put_u64(json, "blockLimitBlocks", occupancy->blocks_by[OCCUPANCY_BLOCKS]);
	torsh_json_put_u64(json, "allocatedRegistersPerBlock", occupancy->block_registers);
	torsh_json_put_u64(json, "allocatedSharedMemPerBlock", occupancy->block_shared_bytes);
	torsh_json_end_object(json);
}

/*
 * Kineto's achieved occupancy is that of a multiprocessor with its share of the grid's blocks,
 * limited to as many as fit; computed in float, for the same rounding. (Above 48 KiB of shared
 * memory Kineto has 0, because it ignores the opt-in limit.)
 */
static void put_by_device(struct json_writer *json, const struct shape *shape,
			  const struct event_device *device)
{
	const struct event_kernel kernel = {
		EVENT_SHAPE(shape->grid, shape->block),
		.registers = shape->registers,
		.static_shared_bytes = shape->static_shared_bytes,
		.dynamic_shared_bytes = shape->dynamic_shared_bytes,
	};
	float blocks, threads = product(shape->block);
	struct occupancy occupancy;

	if (!device || !device->multiprocessors)
		return;
	blocks = product(shape->grid) / (float)device->multiprocessors;
	torsh_json_put_rounded(json, "blocks per SM", (double)blocks, FLT_DECIMAL_DIG);
	torsh_json_put_rounded(json, "warps per SM",
			       (double)blocks * (double)threads / WARP_THREADS, FLT_DECIMAL_DIG);
	if (torsh_occupancy_of(device, &kernel, &occupancy))
		return;
	blocks = blocks < (float)occupancy.blocks ? blocks : (float)occupancy.blocks;
	torsh_json_put_i64(json, "est. achieved occupancy %",
			   lround((double)(blocks * threads /
					   ((float)device->multiprocessor_warps *
					    (float)device->warp_threads)) *
				  100));
	put_occupancy(json, &occupancy);
}

static char *make_members(const struct shape *shape, const struct event_device *device)
{
	struct json_writer json;

	torsh_json_open_members(&json);
	torsh_json_put_u64(&json, "registers per thread", shape->registers);
	torsh_json_put_u64(&json, "shared memory",
			   (uint64_t)shape->static_shared_bytes + shape->dynamic_shared_bytes);
	torsh_json_put_three(&json, "grid", shape->grid[0], shape->grid[1], shape->grid[2]);
	torsh_json_put_three(&json, "block", shape->block[0], shape->block[1], shape->block[2]);
	put_by_device(&json, shape, device);
	return torsh_json_close_memory(&json);
}

/* ---- kept ------------------------------------------------------------------------------------ */

void torsh_chrome_put_kernel(struct chrome *chrome, const struct recorded_process *process,
			     const struct event_kernel *kernel)
{
	const struct shape shape = {
		.process = process,
		.device = kernel->device,
		.registers = kernel->registers,
		.static_shared_bytes = kernel->static_shared_bytes,
		.dynamic_shared_bytes = kernel->dynamic_shared_bytes,
		.grid = {kernel->grid_x, kernel->grid_y, kernel->grid_z},
		.block = {kernel->block_x, kernel->block_y, kernel->block_z},
	};
	struct kept_text *kept =
		torsh_sparse_array_at(&chrome->kernels->strings, hash_of(&shape) % KEPT_TEXTS);

	if (!is_same(&kept->shape, &shape)) {
		const struct device_list *devices =
			&torsh_prepass_of(chrome->trace->prepass, process)->devices;

		kept->shape = shape;
		free(kept->members);
		kept->members = make_members(&shape, torsh_device_list_find(devices, shape.device));
	}
	torsh_json_put_members(&chrome->json, kept->members);
}

struct chrome_kernels *torsh_chrome_kernels_create(void)
{
	struct chrome_kernels *kernels = torsh_need(malloc(sizeof(*kernels)));

	torsh_sparse_array_create(&kernels->strings, sizeof(struct kept_text));
	return kernels;
}

void torsh_chrome_kernels_destroy(struct chrome_kernels *kernels)
{
	for (size_t i = 0; i < KEPT_TEXTS; i++) {
		struct kept_text *kept = torsh_sparse_array_at(&kernels->strings, i);

		free(kept->members);
	}
	torsh_sparse_array_destroy(&kernels->strings);
	free(kernels);
}
