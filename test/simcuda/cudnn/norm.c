/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Batch normalisation of the simulated cuDNN: one kernel for each pass, named for the tensor's
 * layout and type.
 */
#include <stdio.h>

#include "test/simcuda/blas/object.h"
#include "test/simcuda/cudnn/tensor.h"

enum { NAME_BYTES = 128 };

/* cudnn::NAME<TYPE, float, int, 512, true, 1>, NAME with its length as C++ mangles it. */
static cudnnStatus_t launch(cudnnHandle_t handle, const char *channels_first,
			    const char *channels_last, cudnnTensorDescriptor_t x)
{
	const struct tensor *tensor = tensor_of(x);
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "_ZN5cudnn%sI%sfiLi512ELb1ELi1EEEvPKT_PS1_",
		 cudnn_tensor_is_channels_last(tensor) ? channels_last : channels_first,
		 cudnn_type_mangled(tensor->type));
	return blas_object_launch(handle, name) ? CUDNN_STATUS_EXECUTION_FAILED
						: CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnBatchNormalizationForwardTrainingEx(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
	const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
	const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
	void *yData, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
	const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
	void *resultRunningVariance, double epsilon, void *resultSaveMean,
	void *resultSaveInvVariance, cudnnActivationDescriptor_t activationDesc, void *workspace,
	size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
	return launch(handle, "25bn_fw_tr_1C11_kernel_NCHW", "31batchnorm_fwtr_nhwc_semiPersist",
		      xDesc);
}

cudnnStatus_t do_cudnnBatchNormalizationForwardInference(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
	const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
	void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
	const void *bnBias, const void *estimatedMean, const void *estimatedVariance,
	double epsilon)
{
	return launch(handle, "26bn_fw_inf_1C11_kernel_NCHW", "26bn_fw_inf_1C11_kernel_NHWC",
		      xDesc);
}

cudnnStatus_t do_cudnnBatchNormalizationBackwardEx(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
	const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
	const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
	const cudnnTensorDescriptor_t yDesc, const void *yData,
	const cudnnTensorDescriptor_t dyDesc, const void *dyData,
	const cudnnTensorDescriptor_t dzDesc, void *dzData, const cudnnTensorDescriptor_t dxDesc,
	void *dxData, const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData,
	const void *bnBiasData, void *dBnScaleData, void *dBnBiasData, double epsilon,
	const void *savedMean, const void *savedInvVariance,
	cudnnActivationDescriptor_t activationDesc, void *workSpace, size_t workSpaceSizeInBytes,
	void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
	return launch(handle, "21bn_bw_1C11_kernel_new", "31batchnorm_bwtr_nhwc_semiPersist",
		      xDesc);
}
