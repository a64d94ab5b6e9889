/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Simulated cublasLt, cuBLAS, cuDNN and cuFFT in one library: the functions that
 * test/e2e/blas/calls_of_cuda.c calls, as NVIDIA's headers declare them. They keep what descriptors
 * are set to, and add up all their arguments.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cufftXt.h>

#define ATTRIBUTES 32

static uint64_t sum;

uint64_t oracle_sum(void)
{
	return sum;
}

static void add(uint64_t value)
{
	sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- attributes ------------------------------------------------------------------------------ */

struct attributes {
	uint64_t values[ATTRIBUTES];
};

static cublasStatus_t set(struct attributes *of, int attribute, const void *value, size_t n)
{
	if (!of || attribute < 0 || attribute >= ATTRIBUTES || n > sizeof(uint64_t))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&of->values[attribute], value, n);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const struct attributes *of, int attribute, void *value, size_t n,
			  size_t *n_written)
{
	if (!of || attribute < 0 || attribute >= ATTRIBUTES || n > sizeof(uint64_t))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(value, &of->values[attribute], n);
	*n_written = n;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
					  uint64_t rows, uint64_t columns, int64_t ld)
{
	struct attributes *of = calloc(1, sizeof(*of));

	of->values[CUBLASLT_MATRIX_LAYOUT_TYPE] = (uint64_t)type;
	of->values[CUBLASLT_MATRIX_LAYOUT_ROWS] = rows;
	of->values[CUBLASLT_MATRIX_LAYOUT_COLS] = columns;
	of->values[CUBLASLT_MATRIX_LAYOUT_LD] = (uint64_t)ld;
	*layout = (cublasLtMatrixLayout_t)of;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
						cublasLtMatrixLayoutAttribute_t attribute,
						const void *value, size_t n)
{
	return set((struct attributes *)layout, attribute, value, n);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
						cublasLtMatrixLayoutAttribute_t attribute,
						void *value, size_t n, size_t *n_written)
{
	return get((struct attributes *)layout, attribute, value, n, n_written);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	add((uint64_t)compute * 3 + (uint64_t)scale);
	*product = calloc(1, sizeof(struct attributes));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
					      cublasLtMatmulDescAttributes_t attribute,
					      const void *value, size_t n)
{
	return set((struct attributes *)product, attribute, value, n);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t product,
					      cublasLtMatmulDescAttributes_t attribute, void *value,
					      size_t n, size_t *n_written)
{
	return get((struct attributes *)product, attribute, value, n, n_written);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algorithm,
						    cublasLtMatmulAlgoConfigAttributes_t attribute,
						    const void *value, size_t n)
{
	if (attribute >= 8 || n > sizeof(*algorithm->data))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&algorithm->data[attribute], value, n);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
						    cublasLtMatmulAlgoConfigAttributes_t attribute,
						    void *value, size_t n, size_t *n_written)
{
	memcpy(value, &algorithm->data[attribute], n);
	*n_written = n;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- products -------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
			      const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
			      const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
			      const void *c, cublasLtMatrixLayout_t c_layout, void *d,
			      cublasLtMatrixLayout_t d_layout,
			      const cublasLtMatmulAlgo_t *algorithm, void *work, size_t n_work,
			      cudaStream_t stream)
{
	if (!handle || !product || !a_layout || !b_layout || !c_layout || !d_layout || stream)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	add(n_work + (algorithm ? algorithm->data[0] : 0));
	add((uint64_t)(*(const double *)alpha * 8 + *(const double *)beta));
	add((uint64_t)((char *)d - (const char *)a) * 3 +
	    (uint64_t)((const char *)c - (const char *)b) * 5 +
	    (uint64_t)((char *)work - (char *)d));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
			    int m, int n, int k, const void *alpha, const void *a,
			    cudaDataType a_type, int lda, const void *b, cudaDataType b_type,
			    int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
			    cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	const uint64_t all[] = {handle != NULL,
				ta,
				tb,
				m,
				n,
				k,
				a_type,
				lda,
				b_type,
				ldb,
				c_type,
				ldc,
				compute,
				(uint64_t)(int64_t)algorithm,
				a != b,
				c != a,
				(uint64_t)(*(const double *)alpha + *(const double *)beta)};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		add(all[i]);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
					  cublasOperation_t tb, int m, int n, int k,
					  const void *alpha, const void *a, cudaDataType a_type,
					  int lda, long long a_stride, const void *b,
					  cudaDataType b_type, int ldb, long long b_stride,
					  const void *beta, void *c, cudaDataType c_type, int ldc,
					  long long c_stride, int batch,
					  cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	add((uint64_t)(a_stride * 3 + b_stride * 5 + c_stride * 7 + batch));
	return cublasGemmEx(handle, ta, tb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
			    c_type, ldc, compute, algorithm);
}

/* ---- cuDNN ----------------------------------------------------------------------------------- */

struct sizes {
	int type, n, sizes[CUDNN_DIM_MAX], format;
};

static void keep(struct sizes *of, int type, int n, const int *sizes)
{
	of->type = type;
	of->n = n;
	memcpy(of->sizes, sizes, (size_t)n * sizeof(*sizes));
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor)
{
	*tensor = calloc(1, sizeof(struct sizes));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter)
{
	*filter = calloc(1, sizeof(struct sizes));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
					 int n, const int sizes[], const int strides[])
{
	add((uint64_t)strides[0]);
	keep((struct sizes *)tensor, type, n, sizes);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
					 cudnnTensorFormat_t format, int n, const int sizes[])
{
	((struct sizes *)filter)->format = format;
	keep((struct sizes *)filter, type, n, sizes);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int n_wanted,
					 cudnnDataType_t *type, int *n, int sizes[], int strides[])
{
	const struct sizes *of = (const struct sizes *)tensor;

	if (n_wanted > CUDNN_DIM_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*type = (cudnnDataType_t)of->type;
	*n = of->n;
	memcpy(sizes, of->sizes, (size_t)of->n * sizeof(*sizes));
	memset(strides, 0, (size_t)n_wanted * sizeof(*strides));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int n_wanted,
					 cudnnDataType_t *type, cudnnTensorFormat_t *format, int *n,
					 int sizes[])
{
	int strides[CUDNN_DIM_MAX];

	*format = (cudnnTensorFormat_t)((const struct sizes *)filter)->format;
	return cudnnGetTensorNdDescriptor((cudnnTensorDescriptor_t)filter, n_wanted, type, n, sizes,
					  strides);
}

static cudnnStatus_t convolve(const void *alpha, const void *first, const void *second,
			      const void *third, int algorithm, size_t n_work, const void *beta)
{
	add((uint64_t)((const struct sizes *)first)->sizes[1] * 3 +
	    (uint64_t)((const struct sizes *)second)->sizes[1] * 5 +
	    (uint64_t)((const struct sizes *)third)->sizes[1] * 7);
	add((uint64_t)(*(const double *)alpha * 8 + *(const double *)beta) + n_work * 16 +
	    (uint64_t)algorithm);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
				      const cudnnTensorDescriptor_t x, const void *x_data,
				      const cudnnFilterDescriptor_t w, const void *w_data,
				      const cudnnConvolutionDescriptor_t convolution,
				      cudnnConvolutionFwdAlgo_t algorithm, void *work,
				      size_t n_work, const void *beta,
				      const cudnnTensorDescriptor_t y, void *y_data)
{
	add(handle && x_data && w_data && convolution && work && y_data);
	return convolve(alpha, x, w, y, algorithm, n_work, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
					   const cudnnFilterDescriptor_t w, const void *w_data,
					   const cudnnTensorDescriptor_t dy, const void *dy_data,
					   const cudnnConvolutionDescriptor_t convolution,
					   cudnnConvolutionBwdDataAlgo_t algorithm, void *work,
					   size_t n_work, const void *beta,
					   const cudnnTensorDescriptor_t dx, void *dx_data)
{
	add(handle && w_data && dy_data && convolution && work && dx_data);
	return convolve(alpha, w, dy, dx, algorithm, n_work, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
					     const cudnnTensorDescriptor_t x, const void *x_data,
					     const cudnnTensorDescriptor_t dy, const void *dy_data,
					     const cudnnConvolutionDescriptor_t convolution,
					     cudnnConvolutionBwdFilterAlgo_t algorithm, void *work,
					     size_t n_work, const void *beta,
					     const cudnnFilterDescriptor_t dw, void *dw_data)
{
	add(handle && x_data && dy_data && convolution && work && dw_data);
	return convolve(alpha, x, dy, dw, algorithm, n_work, beta);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
				  cudnnSoftmaxMode_t mode, const void *alpha,
				  const cudnnTensorDescriptor_t x, const void *x_data,
				  const void *beta, const cudnnTensorDescriptor_t y, void *y_data)
{
	add(handle && x_data && y_data);
	return convolve(alpha, x, x, y, algorithm, (size_t)mode, beta);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
				  cudnnBackendDescriptor_t pack)
{
	add(handle && plan && pack);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- cuFFT ----------------------------------------------------------------------------------- */

#define PLANS 8

static bool is_used[PLANS];

cufftResult cufftCreate(cufftHandle *plan)
{
	for (*plan = 1; *plan < PLANS; (*plan)++)
		if (!is_used[*plan]) {
			is_used[*plan] = true;
			return CUFFT_SUCCESS;
		}
	return CUFFT_ALLOC_FAILED;
}

cufftResult cufftDestroy(cufftHandle plan)
{
	is_used[plan] = false;
	return CUFFT_SUCCESS;
}

cufftResult cufftPlan1d(cufftHandle *plan, int n, cufftType type, int batch)
{
	add((uint64_t)(n * 3 + type * 5 + batch));
	return cufftCreate(plan);
}

cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *in, int in_stride,
			  int in_distance, int *out, int out_stride, int out_distance,
			  cufftType type, int batch)
{
	add((uint64_t)(rank * 3 + n[1] * 5 + in_stride * 7 + in_distance * 11 + out_stride * 13 +
		       out_distance * 17 + type * 19 + batch * 23) +
	    !in + !out);
	return cufftCreate(plan);
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *in,
				long long in_stride, long long in_distance, cudaDataType in_type,
				long long *out, long long out_stride, long long out_distance,
				cudaDataType out_type, long long batch, size_t *bytes,
				cudaDataType type)
{
	add((uint64_t)(plan * 29 + rank * 3 + n[2] * 5 + in_stride * 7 + in_distance * 11 +
		       out_stride * 13 + out_distance * 17 + (int)in_type * 19 + batch * 23 +
		       (int)out_type * 31 + (int)type * 37) +
	    !in + !out);
	*bytes = 4711;
	return CUFFT_SUCCESS;
}

static cufftResult execute(cufftHandle plan, const void *in, const void *out, int direction)
{
	if (plan <= 0 || plan >= PLANS || !is_used[plan])
		return CUFFT_INVALID_PLAN;
	add((uint64_t)((const char *)out - (const char *)in) + (uint64_t)direction * 5);
	return CUFFT_SUCCESS;
}

cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out,
			 int direction)
{
	return execute(plan, in, out, direction);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal *in, cufftComplex *out)
{
	return execute(plan, in, out, 0);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *in, cufftReal *out)
{
	return execute(plan, in, out, 0);
}

cufftResult cufftXtExec(cufftHandle plan, void *in, void *out, int direction)
{
	return execute(plan, in, out, direction);
}
