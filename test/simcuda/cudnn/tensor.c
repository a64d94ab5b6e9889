/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tensors and filters of the simulated cuDNN's older functions. */
#include "test/simcuda/cudnn/tensor.h"

#include <stdlib.h>
#include <string.h>

size_t cudnn_type_bytes(cudnnDataType_t type)
{
	switch (type) {
	case CUDNN_DATA_DOUBLE:
	case CUDNN_DATA_INT64:
		return 8;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16:
		return 2;
	case CUDNN_DATA_INT8:
	case CUDNN_DATA_UINT8:
		return 1;
	default:
		return 4;
	}
}

const char *cudnn_type_mangled(cudnnDataType_t type)
{
	return type == CUDNN_DATA_HALF	     ? "6__half"
	       : type == CUDNN_DATA_BFLOAT16 ? "13__nv_bfloat16"
	       : type == CUDNN_DATA_DOUBLE   ? "d"
					     : "f";
}

bool cudnn_tensor_is_channels_last(const struct tensor *tensor)
{
	return tensor->n_dimensions > 1 && tensor->strides[1] == 1 && tensor->dimensions[1] > 1;
}

void cudnn_tensor_set_dense(struct tensor *tensor, cudnnDataType_t type, int n,
			    const int *dimensions)
{
	int stride = 1;

	*tensor = (struct tensor){.type = type, .n_dimensions = n};
	for (int i = n - 1; i >= 0; i--) {
		tensor->dimensions[i] = dimensions[i];
		tensor->strides[i] = stride;
		stride *= dimensions[i];
	}
}

static cudnnStatus_t create(struct tensor **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t do_cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc)
{
	return create((struct tensor **)tensorDesc);
}

cudnnStatus_t do_cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filterDesc)
{
	return create((struct tensor **)filterDesc);
}

cudnnStatus_t do_cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc)
{
	free(tensorDesc);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc)
{
	free(filterDesc);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
					    cudnnDataType_t dataType, int nbDims, const int dimA[],
					    const int strideA[])
{
	struct tensor *tensor = (struct tensor *)tensorDesc;

	if (nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	cudnn_tensor_set_dense(tensor, dataType, nbDims, dimA);
	memcpy(tensor->strides, strideA, (size_t)nbDims * sizeof(*strideA));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
					    int nbDimsRequested, cudnnDataType_t *dataType,
					    int *nbDims, int dimA[], int strideA[])
{
	const struct tensor *tensor = tensor_of(tensorDesc);

	*dataType = tensor->type;
	*nbDims = tensor->n_dimensions;
	for (int i = 0; i < nbDimsRequested && i < tensor->n_dimensions; i++) {
		dimA[i] = tensor->dimensions[i];
		strideA[i] = tensor->strides[i];
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
					    cudnnDataType_t dataType, cudnnTensorFormat_t format,
					    int nbDims, const int filterDimA[])
{
	struct tensor *tensor = (struct tensor *)filterDesc;

	if (nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	cudnn_tensor_set_dense(tensor, dataType, nbDims, filterDimA);
	tensor->format = format;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
					    int nbDimsRequested, cudnnDataType_t *dataType,
					    cudnnTensorFormat_t *format, int *nbDims,
					    int filterDimA[])
{
	const struct tensor *tensor = tensor_of(filterDesc);

	*dataType = tensor->type;
	*format = tensor->format;
	*nbDims = tensor->n_dimensions;
	for (int i = 0; i < nbDimsRequested && i < tensor->n_dimensions; i++)
		filterDimA[i] = tensor->dimensions[i];
	return CUDNN_STATUS_SUCCESS;
}
