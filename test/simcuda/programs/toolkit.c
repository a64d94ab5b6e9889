/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What CUDA 12 and 13 have in different forms: properties of devices, places of memory, graphs and
 * their capture, the driver's entry points; and kernels as the code of nvcc launches them. toolkit
 * [N]: N launches (20). Says what it saw, the same with either's headers but for the first line.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/lib/need.h"

enum { BYTES = 1 << 20, REPLAYS = 3, LAUNCHES = 20 };

/* What nvcc's code calls before main: in no header. */
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFatBinaryEnd(void **handle);
extern void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
				   const char *name, int thread_limit, void *tid, void *bid,
				   void *block, void *grid, int *warp_size);

/* Stands for a kernel: its address is what is launched. */
static void scale(void)
{
}

__attribute__((constructor)) static void register_kernels(void)
{
	static char image[] = "image";
	void **handle = __cudaRegisterFatBinary(image);

	__cudaRegisterFunction(handle, (const char *)scale, "scale", "_Z5scalePffi", -1, NULL, NULL,
			       NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

static void launch(cudaStream_t stream, unsigned n_blocks)
{
	NEED(cudaLaunchKernel((const void *)scale, (dim3){n_blocks, 1, 1}, (dim3){256, 1, 1}, NULL,
			      64, stream));
}

static void describe(void)
{
	struct cudaDeviceProp prop;
	int version, n;

	NEED(cudaRuntimeGetVersion(&version));
	NEED(cudaGetDeviceCount(&n));
	NEED(cudaGetDeviceProperties(&prop, 0));
	printf("CUDA %d, headers %d\n", version, CUDART_VERSION);
	printf("%d: %s, %d.%d, %d multiprocessors, %zu bytes shared, %zu at most, %zu bytes\n", n,
	       prop.name, prop.major, prop.minor, prop.multiProcessorCount, prop.sharedMemPerBlock,
	       prop.sharedMemPerBlockOptin, prop.totalGlobalMem);
}

static void advise_and_prefetch(cudaStream_t stream)
{
	void *managed;

	NEED(cudaMallocManaged(&managed, BYTES, cudaMemAttachGlobal));
#if CUDART_VERSION >= 13000
	struct cudaMemLocation place = {.type = cudaMemLocationTypeDevice, .id = 0};

	NEED(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetReadMostly, place));
	NEED(cudaMemPrefetchAsync(managed, BYTES, place, 0, stream));
#else
	NEED(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetReadMostly, 0));
	NEED(cudaMemPrefetchAsync(managed, BYTES, 0, stream));
#endif
	NEED(cudaStreamSynchronize(stream));
	NEED(cudaFree(managed));
	puts("prefetched");
}

/* How many nodes the next one would wait for. */
static size_t count_dependencies(cudaStream_t stream, cudaGraph_t *graph)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphNode_t *nodes;
	size_t n = 0;

#if CUDART_VERSION >= 13000
	NEED(cudaStreamGetCaptureInfo(stream, &status, NULL, graph, &nodes, NULL, &n));
#else
	NEED(cudaStreamGetCaptureInfo(stream, &status, NULL, graph, &nodes, &n));
#endif
	need(status != cudaStreamCaptureStatusActive, "capture");
	return n;
}

/* Kernels, a memset and a host node, two of them put in order by hand. */
static void run_graph(cudaStream_t stream, void *memory)
{
	cudaGraph_t graph, captured;
	cudaGraphExec_t executable;
	cudaGraphNode_t nodes[8], empty;
	size_t n_before, n_nodes = 8, n_after = 8;

	NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	launch(stream, 2);
	n_before = count_dependencies(stream, &graph);
	NEED(cudaMemsetAsync(memory, 7, 4096, stream));
	launch(stream, 4);
	NEED(cudaStreamEndCapture(stream, &captured));
	need(captured != graph, "graph");
	NEED(cudaGraphAddEmptyNode(&empty, captured, NULL, 0));
	NEED(cudaGraphGetNodes(captured, nodes, &n_nodes));
#if CUDART_VERSION >= 13000
	NEED(cudaGraphAddDependencies(captured, &nodes[0], &empty, NULL, 1));
	NEED(cudaGraphNodeGetDependencies(empty, nodes, NULL, &n_after));
#else
	NEED(cudaGraphAddDependencies(captured, &nodes[0], &empty, 1));
	NEED(cudaGraphNodeGetDependencies(empty, nodes, &n_after));
#endif
	NEED(cudaGraphInstantiate(&executable, captured, 0));
	for (int i = 0; i < REPLAYS; i++)
		NEED(cudaGraphLaunch(executable, stream));
	NEED(cudaStreamSynchronize(stream));
	NEED(cudaGraphExecDestroy(executable));
	NEED(cudaGraphDestroy(captured));
	printf("graph of %zu nodes, %zu and %zu before\n", n_nodes, n_before, n_after);
}

/*
 * The form of cuMemAdvise that this CUDA means: the older one takes a device, the newer one a
 * place.
 */
static void look_up_entry(void *memory)
{
	enum cudaDriverEntryPointQueryResult status;
	void *entry = NULL;

#if CUDART_VERSION >= 13000
	CUresult (*advise)(CUdeviceptr, size_t, CUmem_advise, CUmemLocation);

	NEED(cudaGetDriverEntryPointByVersion("cuMemAdvise", &entry, CUDART_VERSION,
					      cudaEnableDefault, &status));
	*(void **)&advise = entry;
	NEED(advise((CUdeviceptr)memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY,
		    (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}));
#else
	CUresult (*advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice);

	NEED(cudaGetDriverEntryPoint("cuMemAdvise", &entry, cudaEnableDefault, &status));
	*(void **)&advise = entry;
	NEED(advise((CUdeviceptr)memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
#endif
	need(status, "cudaGetDriverEntryPoint");
	puts("advised");
}

/* A box of bytes to the device, without its borders, and back. */
static void copy_box(void *memory, cudaStream_t stream)
{
	enum { SIDE = 8, INNER = SIDE - 2, PITCH = 64 };
	unsigned char box[SIDE * SIDE * SIDE], back[sizeof(box)] = {0};
	struct cudaMemcpy3DParms there = {
		.srcPtr = {.ptr = box, .pitch = SIDE, .xsize = SIDE, .ysize = SIDE},
		.srcPos = {1, 0, 1},
		.dstPtr = {.ptr = memory, .pitch = PITCH, .xsize = INNER, .ysize = SIDE},
		.extent = {INNER, SIDE, INNER},
		.kind = cudaMemcpyHostToDevice,
	};
	struct cudaMemcpy3DParms again = {
		.srcPtr = there.dstPtr,
		.dstPtr = {.ptr = back, .pitch = SIDE, .xsize = SIDE, .ysize = SIDE},
		.dstPos = there.srcPos,
		.extent = there.extent,
		.kind = cudaMemcpyDeviceToHost,
	};
	unsigned n_same = 0, n_zero = 0;

	for (unsigned i = 0; i < sizeof(box); i++)
		box[i] = (unsigned char)(1 + i % 255);
	NEED(cudaMemcpy3D(&there));
	NEED(cudaMemcpy3DAsync(&again, stream));
	NEED(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < sizeof(box); i++) {
		n_same += back[i] == box[i];
		n_zero += !back[i];
	}
	printf("of %zu bytes %u came back, %u were left alone\n", sizeof(box), n_same, n_zero);
}

int main(int argc, char **argv)
{
	int n_launches = argc > 1 ? atoi(argv[1]) : LAUNCHES;
	char *host = calloc(1, BYTES);
	cudaStream_t stream;
	void *memory;

	describe();
	NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	NEED(cudaMalloc(&memory, BYTES));
	NEED(cudaMemcpyAsync(memory, host, BYTES, cudaMemcpyHostToDevice, stream));
	for (int i = 0; i < n_launches; i++)
		launch(stream, 1u + (unsigned)i % 4);
	NEED(cudaMemcpyAsync(host, memory, BYTES / 2, cudaMemcpyDeviceToHost, stream));
	NEED(cudaStreamSynchronize(stream));
	copy_box(memory, stream);
	advise_and_prefetch(stream);
	run_graph(stream, memory);
	look_up_entry(memory);
	NEED(cudaFree(memory));
	NEED(cudaStreamDestroy(stream));
	free(host);
	return 0;
}
