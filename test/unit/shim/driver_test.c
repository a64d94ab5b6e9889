/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * shim/cuda/driver.h against the CUDA driver's own headers; test/e2e/cuda/driver_entries.py has its
 * functions.
 */
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

#include "agent/wire/event.h"
#include "shim/cuda/driver.h"

#define SAME(ours, our_field, Theirs, their_field)                                           \
	_Static_assert(offsetof(ours, our_field) == offsetof(Theirs, their_field),           \
		       #Theirs "." #their_field);                                            \
	_Static_assert(sizeof(((Theirs *)0)->their_field) <= sizeof(((ours *)0)->our_field), \
		       "size of " #their_field)

SAME(struct driver_launch, grid, CUlaunchConfig, gridDimX);
SAME(struct driver_launch, block, CUlaunchConfig, blockDimX);
SAME(struct driver_launch, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME(struct driver_launch, stream, CUlaunchConfig, hStream);

SAME(struct driver_memcpy_2d, from.memory, CUDA_MEMCPY2D, srcMemoryType);
SAME(struct driver_memcpy_2d, from.device, CUDA_MEMCPY2D, srcDevice);
SAME(struct driver_memcpy_2d, to.memory, CUDA_MEMCPY2D, dstMemoryType);
SAME(struct driver_memcpy_2d, to.device, CUDA_MEMCPY2D, dstDevice);
SAME(struct driver_memcpy_2d, width_bytes, CUDA_MEMCPY2D, WidthInBytes);
SAME(struct driver_memcpy_2d, height, CUDA_MEMCPY2D, Height);

#define BOX_OF(Theirs)                                                     \
	SAME(struct driver_memcpy_3d, from.memory, Theirs, srcMemoryType); \
	SAME(struct driver_memcpy_3d, from.device, Theirs, srcDevice);     \
	SAME(struct driver_memcpy_3d, to.memory, Theirs, dstMemoryType);   \
	SAME(struct driver_memcpy_3d, to.device, Theirs, dstDevice);       \
	SAME(struct driver_memcpy_3d, width_bytes, Theirs, WidthInBytes);  \
	SAME(struct driver_memcpy_3d, height, Theirs, Height);             \
	SAME(struct driver_memcpy_3d, depth, Theirs, Depth)
BOX_OF(CUDA_MEMCPY3D);
BOX_OF(CUDA_MEMCPY3D_PEER);

_Static_assert(sizeof(struct driver_ipc) == sizeof(CUipcMemHandle), "CUipcMemHandle");

#if CUDA_VERSION >= 12080
SAME(struct driver_operand, type, CUmemcpy3DOperand, type);
SAME(struct driver_operand, address, CUmemcpy3DOperand, op.ptr.ptr);
SAME(struct driver_operand, array, CUmemcpy3DOperand, op.array.array);
SAME(struct driver_memcpy_3d_copy, from, CUDA_MEMCPY3D_BATCH_OP, src);
SAME(struct driver_memcpy_3d_copy, to, CUDA_MEMCPY3D_BATCH_OP, dst);
SAME(struct driver_memcpy_3d_copy, width, CUDA_MEMCPY3D_BATCH_OP, extent.width);
SAME(struct driver_memcpy_3d_copy, depth, CUDA_MEMCPY3D_BATCH_OP, extent.depth);
SAME(struct driver_decompress, from_bytes, CUmemDecompressParams, srcNumBytes);
SAME(struct driver_decompress, to_bytes, CUmemDecompressParams, dstNumBytes);
_Static_assert(sizeof(struct driver_operand) == sizeof(CUmemcpy3DOperand), "CUmemcpy3DOperand");
_Static_assert(sizeof(struct driver_memcpy_3d_copy) == sizeof(CUDA_MEMCPY3D_BATCH_OP),
	       "CUDA_MEMCPY3D_BATCH_OP");
_Static_assert(sizeof(struct driver_decompress) == sizeof(CUmemDecompressParams),
	       "CUmemDecompressParams");
#endif

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
#if CUDA_VERSION >= 12080
	assert_int_equal(DRIVER_OPERAND_ARRAY, CU_MEMCPY_OPERAND_TYPE_ARRAY);
#endif
	assert_ptr_equal(DRIVER_STREAM_LEGACY, CU_STREAM_LEGACY);
	assert_ptr_equal(DRIVER_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
}

static void directions_are_between_kinds_of_memory(void **state)
{
	(void)state;
	assert_int_equal(torsh_driver_direction(DRIVER_HOST, DRIVER_DEVICE), COPY_HTOD);
	assert_int_equal(torsh_driver_direction(DRIVER_DEVICE, DRIVER_HOST), COPY_DTOH);
	assert_int_equal(torsh_driver_direction(DRIVER_ARRAY, DRIVER_DEVICE), COPY_ATOD);
	assert_int_equal(torsh_driver_direction(CU_MEMORYTYPE_UNIFIED, DRIVER_DEVICE),
			 COPY_UNKNOWN);
	assert_int_equal(torsh_driver_direction(0, 17), COPY_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
		cmocka_unit_test(directions_are_between_kinds_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
