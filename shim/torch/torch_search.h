/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The search of each step of torch_calibration.def: it finds the operator's known arguments in the
 * record of the call. All functions are called on the calibrating thread.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_SEARCH_H
#define TORSH_SHIM_TORCH_TORCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/torch/torch.h"

/* The layout as far as it is found. */
extern struct torch_layout torsh_torch_candidate;

/*
 * Each function searches the at::RecordFunction of the step's operator; number is the step's.
 * Returns whether a place matches, in agreement with the earlier steps.
 */

/* Find the array of inputs, and a tensor's sizes, by two tensors of known shapes. */
bool torsh_torch_look_inputs(const void *record, uint64_t number);

/* Find a tensor's storage, and where its memory is, by two tensors of known bytes. */
bool torsh_torch_look_storage(const void *record, uint64_t number);

/* Confirm inputs and sizes with tensors of other shapes. */
bool torsh_torch_look_inputs_again(const void *record, uint64_t number);

/* Find a tensor's strides, with transposed tensors. */
bool torsh_torch_look_strides(const void *record, uint64_t number);

/* Find sizes and strides of tensors with more dimensions than are stored inline. */
bool torsh_torch_look_many_dims(const void *record, uint64_t number);

/* Narrow the offset of a tensor's data type down; number: its c10::ScalarType. */
bool torsh_torch_look_type(const void *record, uint64_t number);

/* Find the offset of a tensor's device, which is the CPU. */
bool torsh_torch_look_device(const void *record, uint64_t number);

/* Find the sequence number, in two calls (number 0 and 1) with a node created in between. */
bool torsh_torch_look_sequence(const void *record, uint64_t number);

/* Find the number of the forward thread; number: 1 in a backward call, else 0. */
bool torsh_torch_look_forward_thread(const void *record, uint64_t number);

/* Find the tag of an integer with the value number. */
bool torsh_torch_look_integer(const void *record, uint64_t number);

/* Find the tag of a double with the value 0.5. */
bool torsh_torch_look_real(const void *record, uint64_t number);

/* Find the tags of a list of integers, of a bool with the value number, and of None. */
bool torsh_torch_look_list(const void *record, uint64_t number);

/* Confirm the layout of lists, with a list of tensors. */
bool torsh_torch_look_tensors(const void *record, uint64_t number);

/* Find the layout of a process group, in two calls (number 0 and 1). */
bool torsh_torch_look_group(const void *record, uint64_t number);

#endif
