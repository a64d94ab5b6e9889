/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls cublasLt, cuDNN, cuFFT and cuBLAS as NVIDIA's headers declare them, prints on stderr what
 * each call was ("name routine sizes type letters shape details"), and prints what the functions
 * got. The libraries are simulated: test/e2e/blas/cuda_oracle_so.c.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cufftXt.h>

#define NEED(call)                                                  \
	do {                                                        \
		int status = (int)(call);                           \
		if (status) {                                       \
			fprintf(stderr, "%s: %d\n", #call, status); \
			exit(1);                                    \
		}                                                   \
	} while (0)

extern uint64_t oracle_sum(void);

static char a[8], b[8], c[8], work[8];
static const double one = 1, zero;

static void say(const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static cublasLtMatrixLayout_t layout_of(cudaDataType type, uint64_t rows, uint64_t columns,
					int32_t batch)
{
	cublasLtMatrixLayout_t layout;

	NEED(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, (int64_t)rows));
	NEED(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
					      sizeof(batch)));
	return layout;
}

static void call_cublaslt(void)
{
	cublasLtMatmulDesc_t product;
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
	int32_t transposed = CUBLAS_OP_T, id = 21, tile = 7, split = 3;
	cublasLtMatmulAlgo_t algorithm = {{0}};
	cublasLtMatrixLayout_t la = layout_of(CUDA_R_16BF, 640, 320, 5);
	cublasLtMatrixLayout_t lb = layout_of(CUDA_R_16BF, 640, 96, 5);
	cublasLtMatrixLayout_t lc = layout_of(CUDA_R_32F, 320, 96, 5);

	NEED(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	NEED(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
					    sizeof(transposed)));
	NEED(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
					    sizeof(epilogue)));
	NEED(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_ID, &id,
						  sizeof(id)));
	NEED(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile,
						  sizeof(tile)));
	NEED(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
						  &split, sizeof(split)));
	NEED(cublasLtMatmul((cublasLtHandle_t)a, product, &one, a, la, b, lb, &zero, c, lc, c, lc,
			    &algorithm, work, 77, NULL));
	say("cublasLtMatmul matmul 320 96 640 5 bfloat16 TN - "
	    "algorithm 21, tile 7, split-k 3, epilogue relu+bias+aux");
	/* The algorithm is the library's choice. */
	NEED(cublasLtMatmul((cublasLtHandle_t)a, product, &one, a, la, b, lb, &zero, c, lc, c, lc,
			    NULL, work, 78, NULL));
	say("cublasLtMatmul matmul 320 96 640 5 bfloat16 TN - epilogue relu+bias+aux");
	printf("%d\n", cublasLtMatmul(NULL, product, &one, a, la, b, lb, &zero, c, lc, c, lc, NULL,
				      work, 79, NULL));
	say("cublasLtMatmul matmul - - - - - - - failed with status 1");
}

static void call_cublas(void)
{
	cublasHandle_t handle = (cublasHandle_t)a;

	NEED(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 30, 40, 50, &one, a, CUDA_R_16F, 31, b,
			  CUDA_R_16F, 41, &zero, c, CUDA_R_16F, 32, CUBLAS_COMPUTE_32F,
			  CUBLAS_GEMM_DEFAULT));
	say("cublasGemmEx gemmEx 30 40 50 - float16 NT - -");
	NEED(cublasGemmStridedBatchedEx(
		handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 4, 5, &one, a, CUDA_R_8I, 31, 33, b, CUDA_R_8I,
		41, 43, &zero, c, CUDA_R_32I, 32, 34, 9, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
	say("cublasGemmStridedBatchedEx gemmStridedBatchedEx 3 4 5 9 int8 TN - -");
}

static cudnnTensorDescriptor_t tensor_of(cudnnDataType_t type, int n, const int *sizes)
{
	const int strides[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	cudnnTensorDescriptor_t tensor;

	NEED(cudnnCreateTensorDescriptor(&tensor));
	NEED(cudnnSetTensorNdDescriptor(tensor, type, n, sizes, strides));
	return tensor;
}

static void call_cudnn(void)
{
	const int in[] = {2, 6, 12, 10}, out[] = {2, 8, 10, 8}, weights[] = {8, 3, 3, 3};
	cudnnTensorDescriptor_t x = tensor_of(CUDNN_DATA_HALF, 4, in);
	cudnnTensorDescriptor_t y = tensor_of(CUDNN_DATA_HALF, 4, out);
	cudnnFilterDescriptor_t w;
	cudnnHandle_t handle = (cudnnHandle_t)a;
	cudnnConvolutionDescriptor_t convolution = (cudnnConvolutionDescriptor_t)b;

	NEED(cudnnCreateFilterDescriptor(&w));
	NEED(cudnnSetFilterNdDescriptor(w, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, weights));
	NEED(cudnnConvolutionForward(handle, &one, x, a, w, b, convolution,
				     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, work, 81, &zero, y, c));
	say("cudnnConvolutionForward convolution 160 4 27 2 float16 - "
	    "2x6x12x10:8x3x3x3:2x8x10x8 algorithm 6");
	NEED(cudnnConvolutionBackwardData(handle, &one, w, b, y, c, convolution,
					  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, work, 82, &zero, x,
					  a));
	say("cudnnConvolutionBackwardData convolution 160 4 27 2 float16 - "
	    "2x6x12x10:8x3x3x3:2x8x10x8 algorithm 1");
	NEED(cudnnConvolutionBackwardFilter(handle, &one, x, a, y, c, convolution,
					    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, work, 83, &zero, w,
					    b));
	say("cudnnConvolutionBackwardFilter convolution 160 4 27 2 float16 - "
	    "2x6x12x10:8x3x3x3:2x8x10x8 algorithm 3");
	NEED(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &one, y, c,
				 &zero, y, c));
	say("cudnnSoftmaxForward softmax - - - - float16 - 2x8x10x8:2x8x10x8 -");
	NEED(cudnnBackendExecute(handle, (cudnnBackendDescriptor_t)b, (cudnnBackendDescriptor_t)c));
	say("cudnnBackendExecute graph - - - - - - - -");
}

static void call_cufft(void)
{
	int sizes[] = {6, 10}, *none = NULL;
	long long large[] = {4, 8, 16};
	cufftHandle plain, many, made;
	size_t bytes;

	NEED(cufftPlan1d(&plain, 1000, CUFFT_Z2Z, 3));
	say("cufftPlan1d fft_plan - 1000 - 3 complex128 - 1000 -");
	NEED(cufftExecZ2Z(plain, (cufftDoubleComplex *)a, (cufftDoubleComplex *)b, CUFFT_FORWARD));
	say("cufftExecZ2Z fft_c2c - 1000 - 3 complex128 - 1000 forward, out of place");
	NEED(cufftPlanMany(&many, 2, sizes, none, 1, 60, none, 1, 60, CUFFT_R2C, 7));
	say("cufftPlanMany fft_plan - 60 - 7 float32 - 6x10 -");
	NEED(cufftExecR2C(many, (cufftReal *)a, (cufftComplex *)a));
	say("cufftExecR2C fft_r2c - 60 - 7 float32 - 6x10 in place");
	NEED(cufftDestroy(plain));
	NEED(cufftCreate(&made)); /* at the former one's number */
	NEED(cufftXtMakePlanMany(made, 3, large, NULL, 1, 1, CUDA_C_32F, NULL, 1, 1, CUDA_C_32F, 2,
				 &bytes, CUDA_C_32F));
	say("cufftXtMakePlanMany fft_plan - 512 - 2 complex64 - 4x8x16 -");
	NEED(cufftXtExec(made, a, a, CUFFT_INVERSE));
	say("cufftXtExec fft_c2c - 512 - 2 complex64 - 4x8x16 backward, in place");
	printf("%d %zu %d\n", made == plain, bytes, cufftExecC2R(99, NULL, NULL));
	say("cufftExecC2R fft - - - - - - - -");
}

int main(void)
{
	errno = ERANGE;
	call_cublaslt();
	call_cublas();
	call_cudnn();
	call_cufft();
	printf("%llu %d\n", (unsigned long long)oracle_sum(), errno);
	return 0;
}
