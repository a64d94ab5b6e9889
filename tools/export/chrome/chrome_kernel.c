/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A kernel's launch parameters, as Kineto has them in a kernel's args: registers, shared memory,
 * grid and block; and, if the device's properties are recorded, the blocks and warps per
 * multiprocessor, and the occupancy.
 *
 * The text is cached for launches that are alike: a program has few kinds of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"
#include "tools/export/chrome/chrome.h"

/* more than a training has kinds of launches; what two share one place is written anew */
#define KEPT_TEXTS 1024u
#define TEXT_BYTES 1024u /* of the longest, with 25 numbers */
#define WARP_THREADS 32u /* as Kineto has it, for all devices */

/* What the text is made of. */
struct shape {
	const struct recorded_process *process;
	uint32_t device, registers, static_shared_bytes, dynamic_shared_bytes;
	uint32_t grid[3], block[3];
};

struct kept_text {
	struct shape shape;
	size_t n;
	char text[TEXT_BYTES];
};

struct chrome_kernels {
	struct sparse_array strings; /* of struct kept_text */
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

static char *put_three(char *at, const uint32_t *three)
{
	at = NUMBER(at, "[", three[0]);
	at = NUMBER(at, ",", three[1]);
	at = NUMBER(at, ",", three[2]);
	return PUT(at, "]");
}

static float product(const uint32_t *three)
{
	return (float)((double)three[0] * three[1] * three[2]);
}

/* "WARPS|REGS": all that there is no more of. */
static char *put_limits(char *at, const struct occupancy *occupancy)
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

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (occupancy->blocks_by[order[i]] != occupancy->blocks)
			continue;
		at = torsh_put_text(torsh_put_text(at, separator), names[order[i]]);
		separator = "|";
	}
	return at;
}

/* Barriers are unknown; Kineto ignores them too. */
static char *put_occupancy(char *at, const struct occupancy *occupancy)
{
	at = NUMBER(at, ",\"occupancy\":{\"activeBlocksPerMultiprocessor\":", occupancy->blocks);
	at = put_limits(PUT(at, ",\"limitingFactors\":\""), occupancy);
	at = NUMBER(at, "\",\"blockLimitRegs\":", occupancy->blocks_by[OCCUPANCY_REGISTERS]);
	at = NUMBER(at, ",\"blockLimitSharedMem\":", occupancy->blocks_by[OCCUPANCY_SHARED]);
	at = NUMBER(at, ",\"blockLimitWarps\":", occupancy->blocks_by[OCCUPANCY_WARPS]);
	at = NUMBER(at, ",\"blockLimitBlocks\":", occupancy->blocks_by[OCCUPANCY_BLOCKS]);
	at = NUMBER(at, ",\"allocatedRegistersPerBlock\":", occupancy->block_registers);
	at = NUMBER(at, ",\"allocatedSharedMemPerBlock\":", occupancy->block_shared_bytes);
	return PUT(at, "}");
}

/*
 * Kineto's achieved occupancy is that of a multiprocessor with its part of the grid's blocks, at
 * most as many as fit; in float, for the same rounding. (With more than 48 KiB of shared memory
 * Kineto has 0, because it does not support opting in to more.)
 */
static char *put_by_device(char *at, const struct shape *shape, const struct event_device *device)
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
		return at;
	blocks = product(shape->grid) / (float)device->multiprocessors;
	at += sprintf(at, ",\"blocks per SM\":%.9g,\"warps per SM\":%.9g", (double)blocks,
		      (double)blocks * (double)threads / WARP_THREADS);
	if (torsh_occupancy_of(device, &kernel, &occupancy))
		return at;
	blocks = blocks < (float)occupancy.blocks ? blocks : (float)occupancy.blocks;
	at += sprintf(at, ",\"est. achieved occupancy %%\":%ld",
		      lround((double)(blocks * threads /
				      ((float)device->multiprocessor_warps *
				       (float)device->warp_threads)) *
			     100));
	return put_occupancy(at, &occupancy);
}

static char *put_shape(char *at, const struct shape *shape, const struct event_device *device)
{
	at = NUMBER(at, ",\"registers per thread\":", shape->registers);
	at = NUMBER(at, ",\"shared memory\":",
		    (uint64_t)shape->static_shared_bytes + shape->dynamic_shared_bytes);
	at = put_three(PUT(at, ",\"grid\":"), shape->grid);
	at = put_three(PUT(at, ",\"block\":"), shape->block);
	return put_by_device(at, shape, device);
}

/* ---- kept ------------------------------------------------------------------------------------ */

char *torsh_chrome_put_kernel(char *at, struct chrome *chrome,
			      const struct recorded_process *process,
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
		kept->n = (size_t)(put_shape(kept->text, &shape,
					     torsh_device_list_find(devices, shape.device)) -
				   kept->text);
	}
	memcpy(at, kept->text, kept->n);
	return at + kept->n;
}

struct chrome_kernels *torsh_chrome_kernels_create(void)
{
	struct chrome_kernels *kernels = torsh_need(malloc(sizeof(*kernels)));

	torsh_sparse_array_create(&kernels->strings, sizeof(struct kept_text));
	return kernels;
}

void torsh_chrome_kernels_destroy(struct chrome_kernels *kernels)
{
	torsh_sparse_array_destroy(&kernels->strings);
	free(kernels);
}
