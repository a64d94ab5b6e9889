/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tensors and filters of the simulated cuDNN's older functions. */
#ifndef SIMCUDA_CUDNN_TENSOR_H
#define SIMCUDA_CUDNN_TENSOR_H

#include <stdbool.h>

#include "cudnn_api.h"

/* What a cudnnTensorDescriptor_t or a cudnnFilterDescriptor_t points to. */
struct tensor {
	cudnnDataType_t type;
	cudnnTensorFormat_t format; /* of a filter */
	int n_dimensions;
	int dimensions[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
};

static inline const struct tensor *tensor_of(const void *descriptor)
{
	return descriptor;
}

/* Whether the channels of the tensor lie side by side. */
bool cudnn_tensor_is_channels_last(const struct tensor *tensor);

/* A dense tensor of so many dimensions, at most CUDNN_DIM_MAX. */
void cudnn_tensor_set_dense(struct tensor *tensor, cudnnDataType_t type, int n,
			    const int *dimensions);

/* Of one element. */
size_t cudnn_type_bytes(cudnnDataType_t type);

/* As C++ mangles the type of an element that kernels are compiled for. */
const char *cudnn_type_mangled(cudnnDataType_t type);

#endif
