/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Occupancy as it is computed here against CUDA's own calculator, for many launches on many
 * devices.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#if !__has_include(<cuda_occupancy.h>)
int main(void)
{
	puts("there is no cuda_occupancy.h (PyPI's wheels below build/venv, or CUDA_HOME)");
	return 77;
}
#else
#include <cuda_occupancy.h>

#include "tools/device/kernels/occupancy.h"

#define N_LAUNCHES 20000

/*
 * capability, warps, blocks and shared memory of a multiprocessor, as the programming guide lists
 * them.
 */
static const struct {
	uint32_t major, minor, warps, blocks, shared_kib;
} devices[] = {
	{7, 0, 64, 32, 96},   {7, 5, 32, 16, 64},   {8, 0, 64, 32, 164}, {8, 6, 48, 16, 100},
	{8, 7, 48, 16, 164},  {8, 9, 48, 24, 100},  {9, 0, 64, 32, 228}, {10, 0, 64, 32, 228},
	{10, 3, 64, 32, 228}, {12, 0, 48, 24, 100},
};

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % n;
}

static struct event_device make_device(size_t i)
{
	return (struct event_device){
		.capability_major = devices[i].major,
		.capability_minor = devices[i].minor,
		.multiprocessors = 100,
		.warp_threads = 32,
		.multiprocessor_warps = devices[i].warps,
		.multiprocessor_blocks = devices[i].blocks,
		.multiprocessor_shared_bytes = devices[i].shared_kib << 10,
		.multiprocessor_registers = 65536,
	};
}

static struct event_kernel make_kernel(const struct event_device *device)
{
	uint32_t shared_most = device->multiprocessor_shared_bytes - 1024;

	return (struct event_kernel){
		.grid_x = 1 + random_below(1000),
		.grid_y = 1 + random_below(3),
		.grid_z = 1,
		.block_x = 1 + random_below(128),
		.block_y = 1 + random_below(8),
		.block_z = 1,
		.registers = random_below(256),
		.static_shared_bytes = random_below(3) ? 0 : random_below(4096),
		.dynamic_shared_bytes = random_below(2) ? 0 : random_below(shared_most - 4096),
	};
}

/* The properties of a multiprocessor in CUDA's header. */
static struct cudaOccResult ask_header(const struct event_device *device,
				       const struct event_kernel *kernel)
{
	size_t reserved = device->capability_major >= 8 ? 1024 : 0;
	struct cudaOccDeviceProp properties = {
		.computeMajor = (int)device->capability_major,
		.computeMinor = (int)device->capability_minor,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = (int)device->multiprocessor_warps * 32,
		.regsPerBlock = 65536,
		.regsPerMultiprocessor = 65536,
		.warpSize = 32,
		.sharedMemPerBlock = 49152,
		.sharedMemPerMultiprocessor = device->multiprocessor_shared_bytes,
		.numSms = (int)device->multiprocessors,
		.sharedMemPerBlockOptin = device->multiprocessor_shared_bytes - reserved,
		.reservedSharedMemPerBlock = reserved,
	};
	struct cudaOccFuncAttributes attributes = {
		.maxThreadsPerBlock = 1024,
		.numRegs = (int)kernel->registers,
		.sharedSizeBytes = kernel->static_shared_bytes,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = kernel->dynamic_shared_bytes,
	};
	struct cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
	struct cudaOccResult result;

	assert_int_equal(
		cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
							(int)(kernel->block_x * kernel->block_y),
							kernel->dynamic_shared_bytes),
		CUDA_OCC_SUCCESS);
	return result;
}

static void check_launch(const struct event_device *device, const struct event_kernel *kernel)
{
	uint32_t warps = (kernel->block_x * kernel->block_y + 31) / 32;
	const struct cudaOccResult by_header = ask_header(device, kernel);
	int expected = by_header.activeBlocksPerMultiprocessor;
	struct occupancy occupancy;

	/* The header also refuses what no driver would launch. */
	if (!expected)
		return;
	assert_null(torsh_occupancy_of(device, kernel, &occupancy));
	assert_int_equal(occupancy.blocks, expected);
	assert_int_equal(occupancy.warps, (uint32_t)expected * warps);
	assert_int_equal(occupancy.blocks_by[OCCUPANCY_WARPS], by_header.blockLimitWarps);
	assert_int_equal(occupancy.blocks_by[OCCUPANCY_BLOCKS], by_header.blockLimitBlocks);
	assert_int_equal(occupancy.blocks_by[OCCUPANCY_REGISTERS], by_header.blockLimitRegs);
	assert_int_equal(occupancy.blocks_by[OCCUPANCY_SHARED], by_header.blockLimitSharedMem);
	assert_int_equal(occupancy.block_registers, by_header.allocatedRegistersPerBlock);
	assert_int_equal(occupancy.block_shared_bytes, by_header.allocatedSharedMemPerBlock);
	assert_true(occupancy.share > 0 && occupancy.share <= 1);
	assert_float_equal(occupancy.waves * expected * device->multiprocessors,
			   kernel->grid_x * kernel->grid_y, 1e-3);
}

static void launches_have_the_blocks_of_cudas_calculator(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		const struct event_device device = make_device(i);

		for (int k = 0; k < N_LAUNCHES; k++) {
			const struct event_kernel kernel = make_kernel(&device);

			check_launch(&device, &kernel);
		}
	}
}

static void missing_values_have_a_reason(void **state)
{
	struct event_device device = make_device(0), silent = {.capability_major = 9};
	struct event_kernel kernel = {
		.grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 32, .block_y = 1, .block_z = 1};
	struct occupancy occupancy;

	(void)state;
	assert_null(torsh_occupancy_of(&device, &kernel, &occupancy));
	assert_int_equal(occupancy.limit, OCCUPANCY_BLOCKS);
	assert_non_null(torsh_occupancy_of(&silent, &kernel, &occupancy));
	device.capability_major = 6;
	assert_non_null(torsh_occupancy_of(&device, &kernel, &occupancy));
	device.capability_major = 13;
	assert_non_null(torsh_occupancy_of(&device, &kernel, &occupancy));
	device.capability_major = 9;
	kernel.block_x = 0;
	assert_non_null(torsh_occupancy_of(&device, &kernel, &occupancy));
	kernel.block_x = 4096;
	assert_non_null(torsh_occupancy_of(&device, &kernel, &occupancy));
	/* 2^64 threads. */
	kernel.block_x = kernel.block_y = UINT32_C(1) << 31;
	kernel.block_z = 4;
	assert_non_null(torsh_occupancy_of(&device, &kernel, &occupancy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_have_the_blocks_of_cudas_calculator),
		cmocka_unit_test(missing_values_have_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
