/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The device demo's program: it answers requests with kernels on two streams, needs a lot of the
 * device's memory for one of them, and forgets to give back what it keeps of each. Against the
 * driver's and the runtime's public headers alone: any compiler makes it.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/ranges/torsh.h"

enum { REQUESTS = 40, LARGE_REQUEST = 25, STREAMS = 2 };
enum { BATCH_BYTES = 1 << 20, LARGE_BYTES = 256 << 20, KEPT_BYTES = 192 << 10 };

static CUmodule module;

static void need(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", what, result);
	exit(1);
}

#define NEED(call) need((int)(call), #call)

static void launch(CUstream stream, const char *name, unsigned n_blocks)
{
	CUfunction function;

	NEED(cuModuleGetFunction(&function, module, name));
	NEED(cuLaunchKernel(function, n_blocks, 1, 1, 256, 1, 1, 0, stream, NULL, NULL));
}

__attribute__((noinline)) static void keep_answer(CUstream stream)
{
	void *answer;

	NEED(cudaMalloc(&answer, KEPT_BYTES)); /* the planted leak */
	NEED(cudaMemsetAsync(answer, 0, KEPT_BYTES, stream));
}

__attribute__((noinline)) static void sort_batch(CUstream stream, size_t n_bytes)
{
	void *scratch;

	NEED(cudaMalloc(&scratch, n_bytes));
	TORSH_RANGE("demo::sort");
	launch(stream, "radix_sort", (unsigned)(n_bytes >> 16));
	launch(stream, "radix_sort", (unsigned)(n_bytes >> 16));
	NEED(cudaStreamSynchronize(stream));
	NEED(cudaFree(scratch));
}

static void answer_request(CUstream stream, int request, const void *host)
{
	size_t n_bytes = request == LARGE_REQUEST ? LARGE_BYTES : BATCH_BYTES;
	void *batch;

	NEED(cudaMalloc(&batch, BATCH_BYTES));
	NEED(cudaMemcpyAsync(batch, host, BATCH_BYTES, cudaMemcpyHostToDevice, stream));
	torsh_range_push("demo::score");
	launch(stream, "score", 16);
	torsh_range_pop();
	sort_batch(stream, n_bytes);
	keep_answer(stream);
	NEED(cudaFree(batch));
}

int main(void)
{
	void *host = calloc(1, BATCH_BYTES);
	CUstream streams[STREAMS];

	NEED(cudaSetDevice(0));
	NEED(cudaFree(NULL));
	NEED(cuModuleLoadData(&module, "code"));
	for (int i = 0; i < STREAMS; i++)
		NEED(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < REQUESTS; i++) {
		torsh_step((uint64_t)i);
		answer_request(streams[i % STREAMS], i, host);
	}
	NEED(cudaDeviceSynchronize());
	free(host);
	printf("answered %d requests\n", REQUESTS);
	return 0;
}
