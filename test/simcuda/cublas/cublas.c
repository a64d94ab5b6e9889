/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated cuBLAS: handles, and products and a few vector operations that launch a kernel and
 * compute nothing.
 */
#include "cublas_api.h"
#include "test/simcuda/blas/blas.h"
#include "test/simcuda/blas/object.h"

#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/config.h"

#define EXPORT __attribute__((visibility("default")))

struct handle {
	struct blas_object object;
	cublasMath_t math;
	cublasPointerMode_t pointers;
	cublasAtomicsMode_t atomics;
	CUdeviceptr workspace; /* 0: none */
};

static struct handle *handle_of(cublasHandle_t handle)
{
	return (struct handle *)handle;
}

cublasStatus_t do_cublasCreate_v2(cublasHandle_t *handle)
{
	CUcontext context;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (cuCtxGetCurrent(&context) || !context)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = (cublasHandle_t)calloc(1, sizeof(struct handle));
	if (!*handle)
		return CUBLAS_STATUS_ALLOC_FAILED;
	if (sim_config()->workspace_bytes &&
	    cuMemAlloc(&handle_of(*handle)->workspace, sim_config()->workspace_bytes))
		return CUBLAS_STATUS_ALLOC_FAILED;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasDestroy_v2(cublasHandle_t handle)
{
	if (handle && handle_of(handle)->workspace)
		cuMemFree(handle_of(handle)->workspace);
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
	handle_of(handle)->object.stream = streamId;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *streamId)
{
	*streamId = handle_of(handle)->object.stream;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
					size_t workspaceSizeInBytes)
{
	return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t do_cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
	handle_of(handle)->math = mode;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
	*mode = handle_of(handle)->math;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
	handle_of(handle)->pointers = mode;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
	*mode = handle_of(handle)->pointers;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t launch(cublasHandle_t handle, const char *name, double flops)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return blas_launch(name, flops, handle_of(handle)->object.stream)
		       ? CUBLAS_STATUS_EXECUTION_FAILED
		       : CUBLAS_STATUS_SUCCESS;
}

#define GEMM(letter, type)                                                                         \
	cublasStatus_t do_cublas##letter##gemm_v2(                                                 \
		cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
		int n, int k, const type *alpha, const type *A, int lda, const type *B, int ldb,   \
		const type *beta, type *C, int ldc)                                                \
	{                                                                                          \
		return launch(handle, "simcuda_" #letter "gemm", blas_gemm_flops(m, n, k, 1));     \
	}                                                                                          \
	cublasStatus_t do_cublas##letter##gemmStridedBatched(                                      \
		cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
		int n, int k, const type *alpha, const type *A, int lda, long long int strideA,    \
		const type *B, int ldb, long long int strideB, const type *beta, type *C, int ldc, \
		long long int strideC, int batchCount)                                             \
	{                                                                                          \
		return launch(handle, "simcuda_" #letter "gemm_batched",                           \
			      blas_gemm_flops(m, n, k, batchCount));                               \
	}                                                                                          \
	cublasStatus_t do_cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t trans,  \
						  int m, int n, const type *alpha, const type *A,  \
						  int lda, const type *x, int incx,                \
						  const type *beta, type *y, int incy)             \
	{                                                                                          \
		return launch(handle, "simcuda_" #letter "gemv", blas_gemm_flops(m, n, 1, 1));     \
	}

GEMM(S, float)
GEMM(D, double)
GEMM(C, cuComplex)
GEMM(Z, cuDoubleComplex)
#undef GEMM

#define DOT(letter, type)                                                                         \
	cublasStatus_t do_cublas##letter##dot_v2(cublasHandle_t handle, int n, const type *x,     \
						 int incx, const type *y, int incy, type *result) \
	{                                                                                         \
		return launch(handle, "simcuda_" #letter "dot", blas_gemm_flops(n, 1, 1, 1));     \
	}

DOT(S, float)
DOT(D, double)
#undef DOT

cublasStatus_t do_cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
			       cublasOperation_t transb, int m, int n, int k, const void *alpha,
			       const void *A, cudaDataType Atype, int lda, const void *B,
			       cudaDataType Btype, int ldb, const void *beta, void *C,
			       cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
			       cublasGemmAlgo_t algo)
{
	return launch(handle, "simcuda_gemm_ex", blas_gemm_flops(m, n, k, 1));
}

cublasStatus_t do_cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
					     cublasOperation_t transb, int m, int n, int k,
					     const void *alpha, const void *A, cudaDataType Atype,
					     int lda, long long int strideA, const void *B,
					     cudaDataType Btype, int ldb, long long int strideB,
					     const void *beta, void *C, cudaDataType Ctype, int ldc,
					     long long int strideC, int batchCount,
					     cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	return launch(handle, "simcuda_gemm_batched_ex", blas_gemm_flops(m, n, k, batchCount));
}

EXPORT const char *cublasGetStatusName(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_SUCCESS	       ? "CUBLAS_STATUS_SUCCESS"
	       : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
						       : "CUBLAS_STATUS_EXECUTION_FAILED";
}

EXPORT const char *cublasGetStatusString(cublasStatus_t status)
{
	return cublasGetStatusName(status);
}
