/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What shim/driver.h and shim/driver.def say of CUDA's driver, against its own headers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)
int main(void)
{
	puts("there are no headers of CUDA (PyPI's wheels below build/venv, or CUDA_HOME)");
	return 77;
}
#else
#include <cuda.h>
#include <cupti_driver_cbid.h>

#include "shim/driver.h"

#define SAME(ours, our_field, Theirs, their_field)                                                            \
	_Static_assert(offsetof(ours, our_field) == offsetof(Theirs, their_field), #Theirs "." #their_field); \
	_Static_assert(sizeof(((Theirs *)0)->their_field) <= sizeof(((ours *)0)->our_field), "size of " #their_field)

SAME(struct driver_launch, grid, CUlaunchConfig, gridDimX);
SAME(struct driver_launch, block, CUlaunchConfig, blockDimX);
SAME(struct driver_launch, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME(struct driver_launch, stream, CUlaunchConfig, hStream);

SAME(struct driver_rect, from.memory, CUDA_MEMCPY2D, srcMemoryType);
SAME(struct driver_rect, from.device, CUDA_MEMCPY2D, srcDevice);
SAME(struct driver_rect, to.memory, CUDA_MEMCPY2D, dstMemoryType);
SAME(struct driver_rect, to.device, CUDA_MEMCPY2D, dstDevice);
SAME(struct driver_rect, width_bytes, CUDA_MEMCPY2D, WidthInBytes);
SAME(struct driver_rect, height, CUDA_MEMCPY2D, Height);

#define BOX_OF(Theirs)                                               \
	SAME(struct driver_box, from.memory, Theirs, srcMemoryType); \
	SAME(struct driver_box, from.device, Theirs, srcDevice);     \
	SAME(struct driver_box, to.memory, Theirs, dstMemoryType);   \
	SAME(struct driver_box, to.device, Theirs, dstDevice);       \
	SAME(struct driver_box, width_bytes, Theirs, WidthInBytes);  \
	SAME(struct driver_box, height, Theirs, Height);             \
	SAME(struct driver_box, depth, Theirs, Depth)
BOX_OF(CUDA_MEMCPY3D);
BOX_OF(CUDA_MEMCPY3D_PEER);

static void numbers_are_those_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(DRIVER_DONE, CUDA_SUCCESS);
	assert_int_equal(DRIVER_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(DRIVER_NOT_READY, CUDA_ERROR_NOT_READY);
	assert_int_equal(DRIVER_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
	assert_int_equal(DRIVER_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
	assert_int_equal(DRIVER_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
	assert_int_equal(DRIVER_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
	assert_int_equal(DRIVER_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
	assert_int_equal(DRIVER_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_int_equal(DRIVER_HOST, CU_MEMORYTYPE_HOST);
	assert_int_equal(DRIVER_DEVICE, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(DRIVER_ARRAY, CU_MEMORYTYPE_ARRAY);
	assert_ptr_equal(DRIVER_STREAM_LEGACY, CU_STREAM_LEGACY);
	assert_ptr_equal(DRIVER_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
}

/* CUPTI knows every function of the driver by its symbol. */
static void entry_points_are_functions_of_the_driver(void **state)
{
#define KERNEL(name, suffix, ...) CUPTI_DRIVER_TRACE_CBID_##name, CUPTI_DRIVER_TRACE_CBID_##name##suffix,
#define COPY KERNEL
#define RECT KERNEL
#define BOX KERNEL
#define MEMSET KERNEL
#define GRAPH KERNEL
	static const int ids[] = {
#include "shim/driver.def"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
		cmocka_unit_test(entry_points_are_functions_of_the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
