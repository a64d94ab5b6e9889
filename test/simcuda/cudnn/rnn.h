/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A recurrent network in the simulated cuDNN: the size of its weights, the place of each, and its
 * kernels.
 */
#ifndef SIMCUDA_CUDNN_RNN_H
#define SIMCUDA_CUDNN_RNN_H

#include "test/simcuda/cudnn/tensor.h"

/* What a cudnnRNNDescriptor_t points to. */
struct rnn {
	cudnnRNNMode_t mode;
	cudnnDataType_t type;
	int input_size, hidden_size;
	int output_size; /* hidden_size, unless there is a projection */
	int n_layers, n_directions;
};

/* A part of the weights: where it begins, in elements, and what it is. */
struct rnn_part {
	size_t offset;
	int rows, columns;
};

enum rnn_pass {
	RNN_FORWARD,
	RNN_BACKWARD_DATA,
	RNN_BACKWARD_WEIGHTS,
};

size_t cudnn_rnn_weight_elements(const struct rnn *rnn);

/*
 * The matrix, or the bias, of a gate of a layer in a direction (linear_id counts those of inputs
 * before those of states).
 */
struct rnn_part cudnn_rnn_part(const struct rnn *rnn, int pseudo_layer, int linear_id,
			       bool is_bias);

/* What a layer keeps of each step of each sequence for the way back, in elements. */
size_t cudnn_rnn_kept_elements(const struct rnn *rnn);

/* A product and a persistent kernel for each layer and direction. */
cudnnStatus_t cudnn_rnn_launch(cudnnHandle_t handle, const struct rnn *rnn, enum rnn_pass pass);

#endif
