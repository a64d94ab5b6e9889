/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that request many copies at once: the sum of their bytes, and their common direction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/wire/event.h"
#include "collectors/cuda/driver/cuda_batches.h"

#define ON_DEVICE 0x10000u /* addresses from here on are a device's */
#define FLOAT_FORMAT 0x20 /* CU_AD_FORMAT_FLOAT */
#define ARRAY_OF_NO_SIZE 7u

static int report_memory(void *value, int attribute, uint64_t address)
{
	assert_int_equal(attribute, DRIVER_POINTER_MEMORY_TYPE);
	*(uint32_t *)value = DRIVER_DEVICE;
	return address < ON_DEVICE; /* as the driver refuses unknown memory */
}

static int report_array(struct cuda_array_3d_shape *shape, void *array)
{
	*shape = (struct cuda_array_3d_shape){
		.format = (uintptr_t)array == ARRAY_OF_NO_SIZE ? -1 : FLOAT_FORMAT,
		.n_channels = 4};
	return 0;
}

static void expect(const struct driver_batch *batch, uint32_t n_queries, uint32_t direction,
		   uint64_t bytes)
{
	struct driver_work work = {.what = DRIVER_COPY, .direction = n_queries, .batch = batch};

	torsh_driver.cuPointerGetAttribute = report_memory;
	torsh_driver.cuArray3DGetDescriptor_v2 = report_array;
	torsh_cuda_describe_batch(&work);
	assert_null(work.batch);
	assert_int_equal(work.direction, direction);
	assert_int_equal(work.bytes, bytes);
}

static void copies_of_one_direction_have_it_and_others_none(void **state)
{
	const uint64_t host[] = {1, 2, 3}, device[] = {ON_DEVICE, ON_DEVICE + 1, ON_DEVICE + 2};
	const uint64_t from[] = {ON_DEVICE, 1, 1}, to[] = {1, ON_DEVICE, ON_DEVICE};
	const size_t sizes[] = {100, 200, 300};

	(void)state;
	expect(&(struct driver_batch){.n = 3, .to = device, .from = host, .sizes = sizes},
	       COPY_UNKNOWN, COPY_HTOD, 600);
	expect(&(struct driver_batch){.n = 2, .to = host, .from = device, .sizes = sizes},
	       COPY_UNKNOWN, COPY_DTOH, 300);
	/* The one that is not alike comes first, and those behind it are. */
	expect(&(struct driver_batch){.n = 3, .to = to, .from = from, .sizes = sizes}, COPY_UNKNOWN,
	       COPY_UNKNOWN, 600);
	expect(&(struct driver_batch){.n = 0}, COPY_UNKNOWN, COPY_UNKNOWN, 0);
}

static void prefetches_and_decompressions_stay_what_they_are(void **state)
{
	const uint64_t at[] = {1, ON_DEVICE};
	const size_t sizes[] = {4096, 8192};
	const struct driver_decompress decompressions[] = {{.from_bytes = 10, .to_bytes = 100},
							   {.from_bytes = 20, .to_bytes = 50}};

	(void)state;
	expect(&(struct driver_batch){.n = 2, .to = at, .from = at, .sizes = sizes}, COPY_PREFETCH,
	       COPY_PREFETCH, 12288);
	expect(&(struct driver_batch){.n = 2, .decompressions = decompressions}, COPY_DECOMPRESSION,
	       COPY_DECOMPRESSION, 150);
}

static struct driver_operand memory(uint64_t address)
{
	return (struct driver_operand){.type = 1, .address = address};
}

static struct driver_operand array(uint64_t handle)
{
	return (struct driver_operand){.type = DRIVER_OPERAND_ARRAY, .array = handle};
}

static void copies_3d_are_counted_in_elements_of_their_arrays(void **state)
{
	const struct driver_memcpy_3d_copy plain = {memory(1), memory(ON_DEVICE), 8, 4, 2, 1, 0};
	const struct driver_memcpy_3d_copy out = {array(1), memory(1), 8, 4, 2, 1, 0};
	const struct driver_memcpy_3d_copy in = {memory(ON_DEVICE), array(1), 8, 4, 2, 1, 0};
	const struct driver_memcpy_3d_copy odd = {array(ARRAY_OF_NO_SIZE), array(1), 8, 4, 2, 1, 0};

	(void)state;
	expect(&(struct driver_batch){.n = 1, .copies_3d = &plain}, COPY_UNKNOWN, COPY_HTOD, 64);
	expect(&(struct driver_batch){.n = 1, .copies_3d = &out}, COPY_UNKNOWN, COPY_ATOH, 64 * 16);
	expect(&(struct driver_batch){.n = 1, .copies_3d = &in}, COPY_UNKNOWN, COPY_DTOA, 64 * 16);
	expect(&(struct driver_batch){.n = 1, .copies_3d = &odd}, COPY_UNKNOWN, COPY_ATOA, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_of_one_direction_have_it_and_others_none),
		cmocka_unit_test(prefetches_and_decompressions_stay_what_they_are),
		cmocka_unit_test(copies_3d_are_counted_in_elements_of_their_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
