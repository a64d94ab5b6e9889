/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Copies and prefetches many at a time, in the forms of CUDA 12 and 13: what
 * test/e2e/cuda/cuda_batches.py has a list of, in this order. The bytes are looked at in the end.
 */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/need.h"

#if CUDA_VERSION >= 13020

#define N_BYTES 16384u
#define PAGE 4096u

static CUstream stream;
static CUdeviceptr device, other, managed;
static unsigned char *host;

static CUdeviceptr of_host(size_t at)
{
	return (CUdeviceptr)(uintptr_t)(host + at);
}

static void *form(const char *name, int version, cuuint64_t flags)
{
	void *found = NULL;

	NEED(cuGetProcAddress(name, &found, version, flags, NULL));
	return found;
}

static CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
static CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

/*
 * Towards the device, and back by the form of CUDA 12.8; then both at once, and within the device.
 */
static void copy_batches(void)
{
	CUdeviceptr there[] = {device, device + 100, device + 300},
		    back[] = {of_host(8192), of_host(8292)};
	CUdeviceptr from[] = {of_host(0), of_host(100), of_host(300)};
	CUdeviceptr mixed_to[] = {other, of_host(8600)}, mixed_from[] = {of_host(0), device};
	size_t sizes[] = {100, 200, 300}, mixed_sizes[] = {10, 20}, seventy = 70, first = 0,
	       failed = 0;
	PFN_cuMemcpyBatchAsync_v12080 old;
	PFN_cuMemcpyBatchAsync_v13000_ptsz per_thread;

	*(void **)&old = form("cuMemcpyBatchAsync", 12080, 0);
	*(void **)&per_thread =
		form("cuMemcpyBatchAsync", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	NEED(cuMemcpyBatchAsync(there, from, sizes, 3, &attributes, &first, 1, stream));
	NEED(old(back, there, sizes, 2, &attributes, &first, 1, &failed, stream));
	need(failed != SIZE_MAX, "the index of what failed");
	NEED(cuMemcpyBatchAsync(mixed_to, mixed_from, mixed_sizes, 2, &attributes, &first, 1,
				stream));
	NEED(cuStreamSynchronize(stream));
	NEED(per_thread(&other, &device, &seventy, 1, &attributes, &first, 1, NULL));
	NEED(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void copy_boxes(void)
{
	CUDA_MEMCPY3D_BATCH_OP box = {
		.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr.ptr = device},
		.dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr.ptr = other + 512},
		.extent = {8, 4, 2},
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
	};
	PFN_cuMemcpy3DBatchAsync_v12080 old;
	size_t failed = 0;

	*(void **)&old = form("cuMemcpy3DBatchAsync", 12080, 0);
	NEED(cuMemcpy3DBatchAsync(1, &box, 0, stream));
	box.extent = (CUextent3D){2, 3, 1};
	NEED(old(1, &box, &failed, 0, stream));
	NEED(cuMemcpyWithAttributesAsync(device + 600, of_host(600), 80, &attributes, stream));
	box.dst.op.ptr.ptr = of_host(9000);
	box.extent = (CUextent3D){3, 5, 1};
	NEED(cuMemcpy3DWithAttributesAsync(&box, 0, stream));
}

static void prefetch(void)
{
	CUdeviceptr ranges[] = {managed, managed + PAGE};
	size_t sizes[] = {PAGE, 2 * PAGE}, first = 0;
	PFN_cuMemPrefetchAsync_v8000 old;

	*(void **)&old = form("cuMemPrefetchAsync", 12010, 0);
	NEED(cuMemPrefetchAsync(managed, PAGE, here, 0, stream));
	NEED(old(managed, 2 * PAGE, 0, stream));
	NEED(cuMemPrefetchBatchAsync(ranges, sizes, 2, &here, &first, 1, 0, stream));
	NEED(cuMemDiscardAndPrefetchBatchAsync(ranges, sizes, 1, &here, &first, 1, 0, stream));
}

/* Batches that are refused, without attributes and without arrays: nothing is done. */
static void be_refused(void)
{
	size_t size = 1, first = 0;

	if (!cuMemcpyBatchAsync(&device, &other, &size, 1, &attributes, &first, 0, stream) ||
	    !cuMemcpyBatchAsync(NULL, NULL, NULL, 1, &attributes, &first, 1, stream))
		need(1, "what should be refused");
}

int main(void)
{
	CUcontext context;

	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuMemAlloc(&device, N_BYTES));
	NEED(cuMemAlloc(&other, N_BYTES));
	NEED(cuMemAllocManaged(&managed, N_BYTES, CU_MEM_ATTACH_GLOBAL));
	NEED(cuMemAllocHost((void **)&host, N_BYTES));
	for (unsigned i = 0; i < 8192; i++)
		host[i] = (unsigned char)(i * 7);
	copy_batches();
	copy_boxes();
	prefetch();
	be_refused();
	NEED(cuStreamSynchronize(stream));
	need(memcmp(host, host + 8192, 300) != 0 || memcmp(host, host + 8600, 20) != 0 ||
		     memcmp(host, host + 9000, 15) != 0,
	     "the bytes that came back");
	return 0;
}
#else
int main(void)
{
	puts("the headers are older than those of CUDA 13.2");
	return 77;
}
#endif
