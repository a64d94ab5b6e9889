/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much room a device has, and programs that need more. room WHAT:
 *	growth		memory of devices comes and goes in each way, and grows
 *	refused		each way requests more than there is, some again after room was made
 *	capture		the same as growth while streams are captured, here and in another thread
 *	pools		memory of pools that were created by location
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/need.h"

#define MIB ((size_t)1 << 20)
#define TOO_MUCH ((size_t)1 << 40)

static CUcontext context;
static CUstream stream;

#define REFUSED(call) need((int)(call) != 2, #call " was not refused")

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};

/* Errors of the runtime's and the current context are as before. */
static void expect_undisturbed(cudaError_t last)
{
	CUcontext current;

	NEED(cuCtxGetCurrent(&current));
	if (cudaPeekAtLastError() != last || current != context) {
		fputs("the runtime's last error or the context changed\n", stderr);
		exit(1);
	}
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void map_and_unmap(size_t bytes)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	NEED(cuMemAddressReserve(&at, 2 * bytes, 0, 0, 0));
	NEED(cuMemCreate(&handle, bytes, &on_device, 0));
	NEED(cuMemMap(at, bytes, 0, handle, 0));
	NEED(cuMemMap(at + bytes, bytes, 0, handle, 0));
	NEED(cuMemRelease(handle)); /* it lives on, mapped twice */
	NEED(cuMemUnmap(at, 2 * bytes));
}

static void grow(void)
{
	CUdeviceptr p[3], later;
	void *q;

	for (size_t i = 1; i <= 40; i++) {
		NEED(cuMemAlloc(&p[0], i * MIB / 2));
		NEED(cudaMalloc(&q, MIB / 3));
		NEED(cuMemAllocAsync(&p[1], i * MIB / 4, stream));
		map_and_unmap(i * 2 * MIB);
		NEED(cuMemAlloc(&p[2], 3 * MIB));
		NEED(cuMemFree(p[2]));
		NEED(cuMemFreeAsync(p[1], stream));
		if (cuMemFree(p[0] + 1) != CUDA_ERROR_INVALID_VALUE) /* it keeps what it has */
			exit(1);
		if (i % 4 == 0)
			NEED(cuMemFree(p[0]));
	}
	NEED(cuMemAlloc(&later, 7 * MIB));
	NEED(cuStreamSynchronize(stream));
}

/* ---- refused --------------------------------------------------------------------------------- */

static __attribute__((noinline)) void be_refused(void)
{
	CUDA_ARRAY_DESCRIPTOR shape = {.Width = 1 << 20,
				       .Height = 1 << 20,
				       .Format = CU_AD_FORMAT_FLOAT,
				       .NumChannels = 1};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;
	CUarray array;
	size_t pitch;
	void *q;

	REFUSED(cuMemAlloc(&p, TOO_MUCH));
	REFUSED(cudaMalloc(&q, TOO_MUCH + MIB));
	if (cudaGetLastError() != cudaErrorMemoryAllocation)
		exit(1);
	REFUSED(cudaMallocPitch(&q, &pitch, 1 << 20, 1 << 20));
	expect_undisturbed(cudaErrorMemoryAllocation);
	cudaGetLastError();
	REFUSED(cuMemAllocAsync(&p, TOO_MUCH + 2 * MIB, stream));
	REFUSED(cuMemCreate(&handle, TOO_MUCH + 4 * MIB, &on_device, 0));
	REFUSED(cuArrayCreate(&array, &shape));
}

static void try_again(void)
{
	size_t free_bytes, total;
	CUdeviceptr p, q;

	NEED(cuMemGetInfo(&free_bytes, &total));
	NEED(cuMemAlloc(&p, free_bytes / 2));
	REFUSED(cuMemAlloc(&q, free_bytes / 4 * 3));
	NEED(cuMemFree(p));
	NEED(cuMemAlloc(&q, free_bytes / 4 * 3));
	expect_undisturbed(cudaSuccess);
}

/* ---- capture --------------------------------------------------------------------------------- */

static void *grow_elsewhere(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)unused;
	NEED(cuCtxSetCurrent(context));
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	grow();
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		exit(1);
	return NULL;
}

static void capture(void)
{
	CUstream captured;
	CUdeviceptr p, of_graph;
	CUgraph graph;
	pthread_t thread;

	NEED(cuMemAlloc(&p, MIB));
	NEED(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuMemsetD8Async(p, 0, MIB, captured));
	NEED(cuMemAllocAsync(&of_graph, 64 * MIB, captured));
	pthread_create(&thread, NULL, grow_elsewhere, NULL);
	pthread_join(thread, NULL);
	grow_elsewhere(NULL);
	NEED(cuMemFreeAsync(of_graph, captured));
	NEED(cuStreamEndCapture(captured, &graph));
	expect_undisturbed(cudaSuccess);
}

/* ---- pools ----------------------------------------------------------------------------------- */

#if CUDA_VERSION >= 13000
static void take_from_pools(void)
{
	CUmemLocation last = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	struct cudaMemLocation same = {.type = cudaMemLocationTypeDevice};
	CUmemoryPool pool;
	cudaMemPool_t default_pool;
	CUdeviceptr p;
	void *q;
	int n;

	NEED(cuDeviceGetCount(&n));
	last.id = same.id = n - 1;
	NEED(cuMemGetMemPool(&pool, &last, CU_MEM_ALLOCATION_TYPE_PINNED));
	NEED(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, stream));
	last.id = same.id = n - 2;
	NEED(cudaMemGetDefaultMemPool(&default_pool, &same, cudaMemAllocationTypePinned));
	NEED(cudaMallocFromPoolAsync(&q, 5 * MIB, default_pool, stream));
	NEED(cuStreamSynchronize(stream));
}
#else
static void take_from_pools(void)
{
	exit(77);
}
#endif

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	CUdevice device;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!strcmp(what, "growth")) {
		grow();
		expect_undisturbed(cudaSuccess);
	} else if (!strcmp(what, "refused")) {
		be_refused();
		try_again();
	} else if (!strcmp(what, "capture")) {
		capture();
	} else if (!strcmp(what, "pools")) {
		take_from_pools();
	} else {
		return 2;
	}
	return 0;
}
