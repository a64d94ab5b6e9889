/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Recurrent networks of the simulated cuDNN. */
#include "test/simcuda/cudnn/rnn.h"

#include <stdio.h>
#include <stdlib.h>

#include "test/simcuda/blas/object.h"
#include "test/simcuda/engine/config.h"

enum { NAME_BYTES = 128, WORKSPACE_BYTES = 1 << 20 };

struct sequences {
	int n_steps, n_sequences;
};

static struct rnn *rnn_of(cudnnRNNDescriptor_t descriptor)
{
	return (struct rnn *)descriptor;
}

static int gates_of(const struct rnn *rnn)
{
	return rnn->mode == CUDNN_LSTM ? 4 : rnn->mode == CUDNN_GRU ? 3 : 1;
}

static int layers_of(const struct rnn *rnn)
{
	return rnn->n_layers * rnn->n_directions;
}

static int width_of(const struct rnn *rnn, int pseudo_layer)
{
	return pseudo_layer < rnn->n_directions ? rnn->input_size
						: rnn->output_size * rnn->n_directions;
}

static bool is_projected(const struct rnn *rnn)
{
	return rnn->output_size != rnn->hidden_size;
}

/* Matrices, then biases, then the projection. */
static size_t layer_elements(const struct rnn *rnn, int pseudo_layer)
{
	size_t hidden = (size_t)rnn->hidden_size, output = (size_t)rnn->output_size,
	       gates = (size_t)gates_of(rnn);
	size_t width = (size_t)width_of(rnn, pseudo_layer);

	return gates * hidden * (width + output + 2) + (is_projected(rnn) ? hidden * output : 0);
}

static size_t offset_of(const struct rnn *rnn, int pseudo_layer)
{
	size_t sum = 0;

	for (int i = 0; i < pseudo_layer; i++)
		sum += layer_elements(rnn, i);
	return sum;
}

size_t cudnn_rnn_weight_elements(const struct rnn *rnn)
{
	return offset_of(rnn, layers_of(rnn));
}

struct rnn_part cudnn_rnn_part(const struct rnn *rnn, int pseudo_layer, int linear_id, bool is_bias)
{
	int gates = gates_of(rnn), width = width_of(rnn, pseudo_layer), hidden = rnn->hidden_size;
	int output = rnn->output_size, states = linear_id - gates;
	size_t begin = offset_of(rnn, pseudo_layer), inputs = (size_t)gates * hidden * width;
	size_t biases = begin + inputs + (size_t)gates * hidden * output;

	if (linear_id >= 2 * gates)
		return (struct rnn_part){biases + (size_t)(2 * gates * hidden), output, hidden};
	if (is_bias)
		return (struct rnn_part){biases + (size_t)(linear_id * hidden), hidden, 1};
	if (states < 0)
		return (struct rnn_part){begin + (size_t)linear_id * hidden * width, hidden, width};
	return (struct rnn_part){begin + inputs + (size_t)states * hidden * output, hidden, output};
}

size_t cudnn_rnn_kept_elements(const struct rnn *rnn)
{
	return (size_t)(layers_of(rnn) * gates_of(rnn) * rnn->hidden_size);
}

cudnnStatus_t cudnn_rnn_launch(cudnnHandle_t handle, const struct rnn *rnn, enum rnn_pass pass)
{
	const char *cell = rnn->mode == CUDNN_LSTM  ? "LSTM"
			   : rnn->mode == CUDNN_GRU ? "GRU_"
						    : "RNN_";
	char product[NAME_BYTES], persistent[NAME_BYTES];

	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	snprintf(product, sizeof(product), "sm%d_xmma_gemm_rnn_tilesize128x64x32_cudnn",
		 sim_config()->arch);
	snprintf(persistent, sizeof(persistent), "_Z24RNN_blockPersist_%s_%sI%sffEvPKT_PS0_",
		 pass == RNN_FORWARD ? "fp" : "bp", cell, cudnn_type_mangled(rnn->type));
	for (int i = 0; i < layers_of(rnn); i++) {
		if (blas_object_launch(handle, product))
			return CUDNN_STATUS_EXECUTION_FAILED;
		if (pass != RNN_BACKWARD_WEIGHTS && blas_object_launch(handle, persistent))
			return CUDNN_STATUS_EXECUTION_FAILED;
	}
	return CUDNN_STATUS_SUCCESS;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

cudnnStatus_t do_cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *rnnDesc)
{
	*rnnDesc = (cudnnRNNDescriptor_t)calloc(1, sizeof(struct rnn));
	return *rnnDesc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t do_cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnnDesc)
{
	free(rnnDesc);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *rnnDataDesc)
{
	*rnnDataDesc = (cudnnRNNDataDescriptor_t)calloc(1, sizeof(struct sequences));
	return *rnnDataDesc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t do_cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc)
{
	free(rnnDataDesc);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
					   cudnnDataType_t dataType, cudnnRNNDataLayout_t layout,
					   int maxSeqLength, int batchSize, int vectorSize,
					   const int seqLengthArray[], void *paddingFill)
{
	*(struct sequences *)rnnDataDesc = (struct sequences){maxSeqLength, batchSize};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo,
					  cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode,
					  cudnnDirectionMode_t dirMode,
					  cudnnRNNInputMode_t inputMode, cudnnDataType_t dataType,
					  cudnnDataType_t mathPrec, cudnnMathType_t mathType,
					  int32_t inputSize, int32_t hiddenSize, int32_t projSize,
					  int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc,
					  uint32_t auxFlags)
{
	*rnn_of(rnnDesc) = (struct rnn){
		.mode = cellMode,
		.type = dataType,
		.input_size = inputSize,
		.hidden_size = hiddenSize,
		.output_size = projSize ? projSize : hiddenSize,
		.n_layers = numLayers,
		.n_directions = dirMode == CUDNN_BIDIRECTIONAL ? 2 : 1,
	};
	return CUDNN_STATUS_SUCCESS;
}

/* ---- Weights and room ------------------------------------------------------------------------ */

cudnnStatus_t do_cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
					    size_t *weightSpaceSize)
{
	*weightSpaceSize = cudnn_rnn_weight_elements(rnn_of(rnnDesc)) *
			   cudnn_type_bytes(rnn_of(rnnDesc)->type);
	return CUDNN_STATUS_SUCCESS;
}

static void report(const struct rnn *rnn, struct rnn_part part, const void *weights,
		   cudnnTensorDescriptor_t descriptor, void **address)
{
	const int dimensions[] = {1, part.rows, part.columns};

	if (descriptor)
		cudnn_tensor_set_dense((struct tensor *)descriptor, rnn->type, 3, dimensions);
	if (address)
		*address = (char *)weights + part.offset * cudnn_type_bytes(rnn->type);
}

cudnnStatus_t do_cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
					 int32_t pseudoLayer, size_t weightSpaceSize,
					 const void *weightSpace, int32_t linLayerID,
					 cudnnTensorDescriptor_t mDesc, void **mAddr,
					 cudnnTensorDescriptor_t bDesc, void **bAddr)
{
	const struct rnn *rnn = rnn_of(rnnDesc);

	if (pseudoLayer < 0 || pseudoLayer >= layers_of(rnn) || linLayerID < 0)
		return CUDNN_STATUS_BAD_PARAM;
	if (linLayerID > 2 * gates_of(rnn) ||
	    (linLayerID == 2 * gates_of(rnn) && (!is_projected(rnn) || bDesc)))
		return CUDNN_STATUS_BAD_PARAM;
	report(rnn, cudnn_rnn_part(rnn, pseudoLayer, linLayerID, false), weightSpace, mDesc, mAddr);
	if (bDesc)
		report(rnn, cudnn_rnn_part(rnn, pseudoLayer, linLayerID, true), weightSpace, bDesc,
		       bAddr);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
					   cudnnForwardMode_t fwdMode,
					   cudnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize,
					   size_t *reserveSpaceSize)
{
	const struct sequences *x = (const struct sequences *)xDesc;
	const struct rnn *rnn = rnn_of(rnnDesc);
	size_t n = (size_t)x->n_steps * (size_t)x->n_sequences;

	if (workSpaceSize)
		*workSpaceSize = WORKSPACE_BYTES;
	if (reserveSpaceSize)
		*reserveSpaceSize =
			fwdMode == CUDNN_FWD_MODE_TRAINING
				? n * cudnn_rnn_kept_elements(rnn) * cudnn_type_bytes(rnn->type)
				: 0;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

cudnnStatus_t
do_cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
		   const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
		   cudnnRNNDataDescriptor_t yDesc, void *y, cudnnTensorDescriptor_t hDesc,
		   const void *hx, void *hy, cudnnTensorDescriptor_t cDesc, const void *cx,
		   void *cy, size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize,
		   void *workSpace, size_t reserveSpaceSize, void *reserveSpace)
{
	return cudnn_rnn_launch(handle, rnn_of(rnnDesc), RNN_FORWARD);
}

cudnnStatus_t do_cudnnRNNBackwardData_v8(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
	cudnnRNNDataDescriptor_t yDesc, const void *y, const void *dy,
	cudnnRNNDataDescriptor_t xDesc, void *dx, cudnnTensorDescriptor_t hDesc, const void *hx,
	const void *dhy, void *dhx, cudnnTensorDescriptor_t cDesc, const void *cx, const void *dcy,
	void *dcx, size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize,
	void *workSpace, size_t reserveSpaceSize, void *reserveSpace)
{
	return cudnn_rnn_launch(handle, rnn_of(rnnDesc), RNN_BACKWARD_DATA);
}

cudnnStatus_t do_cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
					    cudnnWgradMode_t addGrad, const int32_t devSeqLengths[],
					    cudnnRNNDataDescriptor_t xDesc, const void *x,
					    cudnnTensorDescriptor_t hDesc, const void *hx,
					    cudnnRNNDataDescriptor_t yDesc, const void *y,
					    size_t weightSpaceSize, void *dweightSpace,
					    size_t workSpaceSize, void *workSpace,
					    size_t reserveSpaceSize, void *reserveSpace)
{
	return cudnn_rnn_launch(handle, rnn_of(rnnDesc), RNN_BACKWARD_WEIGHTS);
}
