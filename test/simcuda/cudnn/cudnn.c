/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The simulated cuDNN itself: its version, its error texts, and the queries of a handle. */
#include "cudnn_api.h"
#include "test/simcuda/blas/object.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT size_t cudnnGetVersion(void)
{
	return CUDNN_VERSION;
}

EXPORT size_t cudnnGetCudartVersion(void)
{
	return CUDART_VERSION;
}

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
	switch (status) {
	case CUDNN_STATUS_SUCCESS:
		return "CUDNN_STATUS_SUCCESS";
	case CUDNN_STATUS_NOT_INITIALIZED:
		return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_STATUS_BAD_PARAM:
		return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_STATUS_EXECUTION_FAILED:
		return "CUDNN_STATUS_EXECUTION_FAILED";
	default:
		return "CUDNN_STATUS_INTERNAL_ERROR";
	}
}

EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
	if (max_size)
		*message = 0;
}

cudnnStatus_t do_cudnnGetProperty(libraryPropertyType type, int *value)
{
	switch (type) {
	case MAJOR_VERSION:
		*value = CUDNN_MAJOR;
		return CUDNN_STATUS_SUCCESS;
	case MINOR_VERSION:
		*value = CUDNN_MINOR;
		return CUDNN_STATUS_SUCCESS;
	case PATCH_LEVEL:
		*value = CUDNN_PATCHLEVEL;
		return CUDNN_STATUS_SUCCESS;
	default:
		return CUDNN_STATUS_BAD_PARAM;
	}
}

cudnnStatus_t do_cudnnGetStream(cudnnHandle_t handle, cudaStream_t *streamId)
{
	*streamId = blas_object_stream(handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
					   cudnnHandle_t handle, float dropout, void *states,
					   size_t stateSizeInBytes, unsigned long long seed)
{
	/* Without states nothing is drawn. */
	if (!states)
		return CUDNN_STATUS_SUCCESS;
	return blas_object_launch(handle, "_ZN5cudnn19dropout_init_kernelEv")
		       ? CUDNN_STATUS_EXECUTION_FAILED
		       : CUDNN_STATUS_SUCCESS;
}
