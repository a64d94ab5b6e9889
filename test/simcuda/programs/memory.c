/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory of devices, got in every way that there is. memory WHAT:
 *	ways		each way twice: once freed, once left by a function leak_NAME
 *	random SEED	allocations and frees at random, from one thread
 *	threads SEED	the same from eight
 *	context		memory in a context that is destroyed
 *	release		memory in the primary context, released by one of two holders
 *	mistakes	frees of what is not there, and twice
 *	mappings	physical memory that outlives its handle, is mapped twice, and is retained
 *	exit		_exit in the middle
 *	fork		a child that uses nothing
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/need.h"

#define KIB ((size_t)1024)
#define GRANULE ((size_t)2 << 20)
#define N_SLOTS 64
#define N_STEPS 2000
#define N_THREADS 8

static CUcontext context;
static CUstream stream;
static CUmemoryPool pool;

/* ---- every way: name, how to get and free it. n: KiB or texels; p: an address or a handle */

static const CUmemAllocationProp *on_device(void)
{
	static CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};

	return &prop;
}

static CUDA_ARRAY_DESCRIPTOR flat(size_t n)
{
	return (CUDA_ARRAY_DESCRIPTOR){
		.Width = n, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
}

static CUDA_ARRAY3D_DESCRIPTOR deep(size_t n)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = n,
					 .Height = 16,
					 .Depth = 4,
					 .Format = CU_AD_FORMAT_HALF,
					 .NumChannels = 2};
}

static struct cudaChannelFormatDesc channels(void)
{
	return (struct cudaChannelFormatDesc){.x = 16, .y = 16, .f = cudaChannelFormatKindUnsigned};
}

/* As the simulation reads a handle: of a process that is not this one. */
static void foreign(void *handle, size_t n)
{
	struct {
		uint64_t bytes;
		int pid;
	} of_another = {.bytes = n * KIB, .pid = 1};

	memset(handle, 0, CU_IPC_HANDLE_SIZE);
	memcpy(handle, &of_another, sizeof(of_another));
}

static void *program_memory(size_t n)
{
	void *p;

	if (posix_memalign(&p, 4096, n * KIB))
		exit(1);
	return p;
}

#define WAYS                                                                                       \
	WAY(cuMemAlloc, NEED(cuMemAlloc((CUdeviceptr *)p, n *KIB)),                                \
	    NEED(cuMemFree((CUdeviceptr)*p)))                                                      \
	WAY(cuMemAllocPitch, size_t pitch;                                                         \
	    NEED(cuMemAllocPitch((CUdeviceptr *)p, &pitch, 100, n, 4)),                            \
	    NEED(cuMemFree((CUdeviceptr)*p)))                                                      \
	WAY(cuMemAllocManaged,                                                                     \
	    NEED(cuMemAllocManaged((CUdeviceptr *)p, n *KIB, CU_MEM_ATTACH_GLOBAL)),               \
	    NEED(cuMemFree((CUdeviceptr)*p)))                                                      \
	WAY(cuMemAllocAsync, NEED(cuMemAllocAsync((CUdeviceptr *)p, n *KIB, stream)),              \
	    NEED(cuMemFreeAsync((CUdeviceptr)*p, stream)))                                         \
	WAY(cuMemAllocFromPoolAsync,                                                               \
	    NEED(cuMemAllocFromPoolAsync((CUdeviceptr *)p, n *KIB, pool, stream)),                 \
	    NEED(cuMemFree((CUdeviceptr)*p)))                                                      \
	WAY(cuMemAllocHost, NEED(cuMemAllocHost(p, n *KIB)), NEED(cuMemFreeHost(*p)))              \
	WAY(cuMemHostAlloc, NEED(cuMemHostAlloc(p, n *KIB, 0)), NEED(cuMemFreeHost(*p)))           \
	WAY(cuMemHostRegister, *p = program_memory(n);                                             \
	    NEED(cuMemHostRegister(*p, n * KIB, 0)), NEED(cuMemHostUnregister(*p)))                \
	WAY(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR shape = flat(n);                                  \
	    NEED(cuArrayCreate((CUarray *)p, &shape)), NEED(cuArrayDestroy((CUarray)*p)))          \
	WAY(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR shape = deep(n);                              \
	    NEED(cuArray3DCreate((CUarray *)p, &shape)), NEED(cuArrayDestroy((CUarray)*p)))        \
	WAY(cuMipmappedArrayCreate, CUDA_ARRAY3D_DESCRIPTOR shape = deep(n);                       \
	    NEED(cuMipmappedArrayCreate((CUmipmappedArray *)p, &shape, 3)),                        \
	    NEED(cuMipmappedArrayDestroy((CUmipmappedArray)*p)))                                   \
	WAY(cuMemCreate,                                                                           \
	    NEED(cuMemCreate((CUmemGenericAllocationHandle *)p, GRANULE *(1 + n % 3), on_device(), \
			     0)),                                                                  \
	    NEED(cuMemRelease((CUmemGenericAllocationHandle)*p)))                                  \
	WAY(cuIpcOpenMemHandle, CUipcMemHandle handle; foreign(&handle, n);                        \
	    NEED(cuIpcOpenMemHandle((CUdeviceptr *)p, handle, 1)),                                 \
	    NEED(cuIpcCloseMemHandle((CUdeviceptr)*p)))                                            \
	WAY(cudaMalloc, NEED(cudaMalloc(p, n *KIB)), NEED(cudaFree(*p)))                           \
	WAY(cudaMallocPitch, size_t pitch;                                                         \
	    NEED(cudaMallocPitch(p, &pitch, 700, n)), NEED(cudaFree(*p)))                          \
	WAY(cudaMalloc3D, struct cudaPitchedPtr at;                                                \
	    NEED(cudaMalloc3D(&at, (struct cudaExtent){300, n, 3}));                               \
	    *p = at.ptr, NEED(cudaFree(*p)))                                                       \
	WAY(cudaMallocManaged, NEED(cudaMallocManaged(p, n *KIB, cudaMemAttachGlobal)),            \
	    NEED(cudaFree(*p)))                                                                    \
	WAY(cudaMallocAsync, NEED(cudaMallocAsync(p, n *KIB, stream)),                             \
	    NEED(cudaFreeAsync(*p, stream)))                                                       \
	WAY(cudaMallocFromPoolAsync, NEED(cudaMallocFromPoolAsync(p, n *KIB, pool, stream)),       \
	    NEED(cudaFreeAsync(*p, stream)))                                                       \
	WAY(cudaMallocHost, NEED(cudaMallocHost(p, n *KIB)), NEED(cudaFreeHost(*p)))               \
	WAY(cudaHostAlloc, NEED(cudaHostAlloc(p, n *KIB, 0)), NEED(cudaFreeHost(*p)))              \
	WAY(cudaHostRegister, *p = program_memory(n);                                              \
	    NEED(cudaHostRegister(*p, n * KIB, 0)), NEED(cudaHostUnregister(*p)))                  \
	WAY(cudaMallocArray, struct cudaChannelFormatDesc of = channels();                         \
	    NEED(cudaMallocArray((cudaArray_t *)p, &of, n, 16, 0)),                                \
	    NEED(cudaFreeArray((cudaArray_t)*p)))                                                  \
	WAY(cudaMalloc3DArray, struct cudaChannelFormatDesc of = channels();                       \
	    NEED(cudaMalloc3DArray((cudaArray_t *)p, &of, (struct cudaExtent){n, 8, 6},            \
				   cudaArrayLayered)),                                             \
	    NEED(cudaFreeArray((cudaArray_t)*p)))                                                  \
	WAY(cudaMallocMipmappedArray, struct cudaChannelFormatDesc of = channels();                \
	    NEED(cudaMallocMipmappedArray((cudaMipmappedArray_t *)p, &of,                          \
					  (struct cudaExtent){n, 8, 6}, 4, cudaArrayLayered)),     \
	    NEED(cudaFreeMipmappedArray((cudaMipmappedArray_t)*p)))                                \
	WAY(cudaIpcOpenMemHandle, cudaIpcMemHandle_t handle; foreign(&handle, n);                  \
	    NEED(cudaIpcOpenMemHandle(p, handle, 1)), NEED(cudaIpcCloseMemHandle(*p)))

#define WAY(name, get, give)                                                           \
	static __attribute__((noinline)) void get_##name(void **p, size_t n)           \
	{                                                                              \
		get;                                                                   \
	}                                                                              \
	static void give_##name(void **p)                                              \
	{                                                                              \
		give;                                                                  \
	}                                                                              \
	static __attribute__((noinline)) void leak_##name(size_t n)                    \
	{                                                                              \
		void *p = NULL;                                                        \
                                                                                       \
		get_##name(&p, n);                                                     \
		__asm__ volatile("" ::: "memory"); /* no tail call: it is in stacks */ \
	}
WAYS
#undef WAY

	static const struct way {
	const char *name;
	void (*get)(void **p, size_t n);
	void (*give)(void **p);
	void (*leak)(size_t n);
} ways[] = {
#define WAY(name, get, give) {#name, get_##name, give_##name, leak_##name},
	WAYS
#undef WAY
};

#define N_WAYS (sizeof(ways) / sizeof(*ways))

static void go_all_ways(void)
{
	for (size_t i = 0; i < N_WAYS; i++) {
		void *p = NULL;

		ways[i].get(&p, 100 + i);
		ways[i].leak(10 + i);
		ways[i].give(&p);
	}
	NEED(cuStreamSynchronize(stream));
}

/* ---- at random ------------------------------------------------------------------------------- */

static void *go_random(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed;
	void *slots[N_SLOTS] = {0};
	const struct way *of[N_SLOTS];

	NEED(cuCtxSetCurrent(context));
	for (int i = 0; i < N_STEPS; i++) {
		int slot = rand_r(&state) % N_SLOTS;

		if (slots[slot]) {
			of[slot]->give(&slots[slot]);
			slots[slot] = NULL;
		} else {
			of[slot] = &ways[(size_t)rand_r(&state) % N_WAYS];
			of[slot]->get(&slots[slot], 1 + (size_t)rand_r(&state) % 100);
		}
	}
	return NULL;
}

static void go_in_threads(unsigned seed)
{
	pthread_t threads[N_THREADS];

	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, go_random,
			       (void *)(uintptr_t)(seed * N_THREADS + i));
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void go_with_context(void)
{
	CUcontext own;
	CUdeviceptr p;
	CUdevice device;
	void *host;

	NEED(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
	NEED(cuCtxCreate(&own, NULL, 0, device));
#else
	NEED(cuCtxCreate(&own, 0, device));
#endif
	NEED(cuMemAlloc(&p, 300 * KIB));
	NEED(cuMemAlloc(&p, 200 * KIB));
	NEED(cuMemFree(p));
	NEED(cuMemHostAlloc(&host, 50 * KIB, 0));
	NEED(cuCtxDestroy(own));
	NEED(cuCtxSetCurrent(context));
	NEED(cuMemAlloc(&p, 100 * KIB));
	NEED(cuMemAlloc(&p, 250 * KIB));
	NEED(cuMemFree(p));
}

static void release_once(void)
{
	CUcontext again;

	NEED(cuDevicePrimaryCtxRetain(&again, 0));
	leak_cuMemAlloc(70);
	NEED(cuDevicePrimaryCtxRelease(0));
}

static void expect_failure(int result, const char *what)
{
	if (!result) {
		fprintf(stderr, "%s did not fail\n", what);
		exit(1);
	}
}

static void go_wrong(void)
{
	CUdeviceptr p, other;

	NEED(cuMemAlloc(&p, 100 * KIB));
	expect_failure((int)cuMemFree(p + 512), "a free in the middle");
	expect_failure((int)cuMemFree(0x1000), "a free of nothing");
	expect_failure((int)cudaFreeHost((void *)p), "a free of another kind");
	expect_failure((int)cuMemAlloc(&other, (size_t)1 << 50), "an allocation that is too large");
	expect_failure((int)cudaMalloc((void **)&other, (size_t)1 << 50),
		       "the same by the runtime");
	NEED(cuMemAlloc(&other, 50 * KIB));
	NEED(cuMemFree(other));
	expect_failure((int)cuMemFree(other), "a second free");
	NEED(cuMemFree(0));
	NEED(cudaFree(NULL));
}

static void go_mapping(void)
{
	CUmemGenericAllocationHandle first, second, again;
	CUmemAccessDesc access = {.location = on_device()->location,
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at;

	NEED(cuMemAddressReserve(&at, 4 * GRANULE, 0, 0, 0));
	NEED(cuMemCreate(&first, 2 * GRANULE, on_device(), 0));
	NEED(cuMemMap(at, 2 * GRANULE, 0, first, 0));
	NEED(cuMemSetAccess(at, 2 * GRANULE, &access, 1));
	NEED(cuMemRelease(first)); /* it lives on, mapped */
	NEED(cuMemCreate(&second, GRANULE, on_device(), 0));
	NEED(cuMemMap(at + 2 * GRANULE, GRANULE, 0, second, 0));
	NEED(cuMemMap(at + 3 * GRANULE, GRANULE, 0, second, 0));
	NEED(cuMemRetainAllocationHandle(&again, (void *)(at + 2 * GRANULE)));
	NEED(cuMemRelease(again));
	NEED(cuMemUnmap(at + 2 * GRANULE, GRANULE));
	NEED(cuMemRelease(second));
	NEED(cuMemUnmap(at, 2 * GRANULE)); /* the end of the first */
	/* the peak, with the second, which is still mapped */
	NEED(cuMemCreate(&first, 3 * GRANULE, on_device(), 0));
	NEED(cuMemRelease(first));
}

static void fork_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		exit(0);
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

static void begin(void)
{
	CUdevice device;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	int n = 0;

	NEED(cuInit(0));
	NEED(cuDeviceGetCount(&n));
	/* The pool is the last device's: that of the allocation, not of the stream. */
	props.location.id = n - 1;
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuMemPoolCreate(&pool, &props));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "ways";
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	begin();
	if (!strcmp(what, "ways"))
		go_all_ways();
	else if (!strcmp(what, "random"))
		go_random((void *)(uintptr_t)seed);
	else if (!strcmp(what, "threads"))
		go_in_threads(seed);
	else if (!strcmp(what, "context"))
		go_with_context();
	else if (!strcmp(what, "release"))
		release_once();
	else if (!strcmp(what, "mistakes"))
		go_wrong();
	else if (!strcmp(what, "mappings"))
		go_mapping();
	else if (!strcmp(what, "exit") || !strcmp(what, "fork"))
		leak_cuMemAlloc(70);
	else
		return 2;
	if (!strcmp(what, "fork"))
		fork_child();
	if (!strcmp(what, "exit"))
		_exit(3);
	return 0;
}
