/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The simulated cuBLASLt: descriptions of products, one algorithm for each, and a kernel for it. */
#include "cublaslt_api.h"
#include "test/simcuda/blas/blas.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The structs of the header are opaque bytes that are long enough for these. */
struct layout {
	uint64_t rows, columns;
	int32_t batch;
};

struct product {
	cublasOperation_t transposes_a;
};

cublasStatus_t do_cublasLtCreate(cublasLtHandle_t *lightHandle)
{
	*lightHandle = (cublasLtHandle_t)calloc(1, 1);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtDestroy(cublasLtHandle_t lightHandle)
{
	free(lightHandle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
					   cublasComputeType_t computeType,
					   cudaDataType_t scaleType)
{
	*matmulDesc = (cublasLtMatmulDesc_t)calloc(1, sizeof(**matmulDesc));
	return *matmulDesc ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t do_cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc)
{
	free(matmulDesc);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
						 cublasLtMatmulDescAttributes_t attr,
						 const void *buf, size_t sizeInBytes)
{
	if (attr == CUBLASLT_MATMUL_DESC_TRANSA && sizeInBytes >= sizeof(int32_t))
		((struct product *)matmulDesc)->transposes_a = *(const int32_t *)buf;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type,
					     uint64_t rows, uint64_t cols, int64_t ld)
{
	struct layout layout = {rows, cols, 1};

	*matLayout = (cublasLtMatrixLayout_t)calloc(1, sizeof(**matLayout));
	if (!*matLayout)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(*matLayout, &layout, sizeof(layout));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout)
{
	free(matLayout);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout,
						   cublasLtMatrixLayoutAttribute_t attr,
						   const void *buf, size_t sizeInBytes)
{
	if (attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && sizeInBytes >= sizeof(int32_t))
		((struct layout *)matLayout)->batch = *(const int32_t *)buf;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
	*pref = (cublasLtMatmulPreference_t)calloc(1, sizeof(**pref));
	return *pref ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t do_cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
	free(pref);
	return CUBLAS_STATUS_SUCCESS;
}

/* Every algorithm is as good as another. */
cublasStatus_t do_cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
						       cublasLtMatmulPreferenceAttributes_t attr,
						       const void *buf, size_t sizeInBytes)
{
	return pref ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t do_cublasLtMatmulAlgoGetHeuristic(
	cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
	cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
	cublasLtMatrixLayout_t Ddesc, cublasLtMatmulPreference_t preference, int requestedAlgoCount,
	cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
	if (requestedAlgoCount < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(heuristicResultsArray, 0, sizeof(*heuristicResultsArray));
	heuristicResultsArray->state = CUBLAS_STATUS_SUCCESS;
	heuristicResultsArray->wavesCount = 1;
	*returnAlgoCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
				 const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
				 const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
				 const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
				 cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
				 void *workspace, size_t workspaceSizeInBytes, cudaStream_t stream)
{
	const struct product *product = (const struct product *)computeDesc;
	const struct layout *a = (const struct layout *)Adesc, *d = (const struct layout *)Ddesc;
	uint64_t k = product->transposes_a == CUBLAS_OP_N ? a->columns : a->rows;
	double flops = blas_gemm_flops((int64_t)d->rows, (int64_t)d->columns, (int64_t)k, d->batch);

	return blas_launch("simcuda_lt_matmul", flops, stream) ? CUBLAS_STATUS_EXECUTION_FAILED
							       : CUBLAS_STATUS_SUCCESS;
}

EXPORT size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

EXPORT size_t cublasLtGetCudartVersion(void)
{
	return CUBLAS_VERSION;
}

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
					       : "CUBLAS_STATUS_EXECUTION_FAILED";
}

EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return cublasLtGetStatusName(status);
}
