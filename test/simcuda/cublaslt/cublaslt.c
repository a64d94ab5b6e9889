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
	int32_t batch, type;
};

struct product {
	int32_t transposes_a, transposes_b, epilogue;
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
	if (!*matmulDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	((struct product *)*matmulDesc)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc)
{
	free(matmulDesc);
	return CUBLAS_STATUS_SUCCESS;
}

static int32_t *number_of(struct product *product, cublasLtMatmulDescAttributes_t attr)
{
	switch (attr) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return &product->transposes_a;
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return &product->transposes_b;
	case CUBLASLT_MATMUL_DESC_EPILOGUE:
		return &product->epilogue;
	default:
		return NULL;
	}
}

cublasStatus_t do_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
						 cublasLtMatmulDescAttributes_t attr,
						 const void *buf, size_t sizeInBytes)
{
	int32_t *place = number_of((struct product *)matmulDesc, attr);

	if (place && sizeInBytes >= sizeof(*place))
		*place = *(const int32_t *)buf;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const void *value, size_t n, void *buf, size_t sizeInBytes,
			  size_t *sizeWritten)
{
	if (!value || sizeInBytes < n)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(buf, value, n);
	if (sizeWritten)
		*sizeWritten = n;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t do_cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmulDesc,
						 cublasLtMatmulDescAttributes_t attr, void *buf,
						 size_t sizeInBytes, size_t *sizeWritten)
{
	const int32_t *place = number_of((struct product *)matmulDesc, attr);

	return get(place, sizeof(*place), buf, sizeInBytes, sizeWritten);
}

cublasStatus_t do_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type,
					     uint64_t rows, uint64_t cols, int64_t ld)
{
	struct layout layout = {rows, cols, 1, (int32_t)type};

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

cublasStatus_t do_cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t matLayout,
						   cublasLtMatrixLayoutAttribute_t attr, void *buf,
						   size_t sizeInBytes, size_t *sizeWritten)
{
	const struct layout *layout = (const struct layout *)matLayout;

	switch (attr) {
	case CUBLASLT_MATRIX_LAYOUT_TYPE:
		return get(&layout->type, sizeof(layout->type), buf, sizeInBytes, sizeWritten);
	case CUBLASLT_MATRIX_LAYOUT_ROWS:
		return get(&layout->rows, sizeof(layout->rows), buf, sizeInBytes, sizeWritten);
	case CUBLASLT_MATRIX_LAYOUT_COLS:
		return get(&layout->columns, sizeof(layout->columns), buf, sizeInBytes,
			   sizeWritten);
	case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
		return get(&layout->batch, sizeof(layout->batch), buf, sizeInBytes, sizeWritten);
	default:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
}

/* The one algorithm is number 0, all of whose attributes are 0. */
cublasStatus_t do_cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
						       cublasLtMatmulAlgoConfigAttributes_t attr,
						       void *buf, size_t sizeInBytes,
						       size_t *sizeWritten)
{
	static const int32_t zero;

	return get(algo ? &zero : NULL, sizeof(zero), buf, sizeInBytes, sizeWritten);
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
	uint64_t k = product->transposes_a == (int32_t)CUBLAS_OP_N ? a->columns : a->rows;
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
