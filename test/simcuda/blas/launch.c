/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Kernels of the simulated BLAS. */
#include "test/simcuda/blas/blas.h"

#include <pthread.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/work.h"

enum { BLOCKS = 132, THREADS = 256 };

static CUlibrary library;

static void load(void)
{
	static const char code[] = "blas";

	cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0);
}

double blas_gemm_flops(int64_t m, int64_t n, int64_t k, int64_t batch)
{
	return 2.0 * (double)m * (double)n * (double)k * (double)batch;
}

CUresult blas_launch(const char *name, double flops, CUstream stream)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CUlaunchConfig config = {
		.gridDimX = BLOCKS,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
	};
	CUkernel kernel;
	CUresult result;

	pthread_once(&once, load);
	result = cuLibraryGetKernel(&kernel, library, name);
	if (result)
		return result;
	sim_kernel_extra_ns((uint64_t)(flops / (double)sim_config()->flops_per_ns));
	result = cuLaunchKernelEx(&config, (CUfunction)kernel, NULL, NULL);
	sim_kernel_extra_ns(0);
	return result;
}
