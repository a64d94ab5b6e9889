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
 * Search the at::RecordFunction of the step's operator; number is the step's. Returns whether a
 * place matches, in agreement with the earlier steps.
 */
bool torsh_torch_look_inputs(const void *record, uint64_t number);
bool torsh_torch_look_inputs_again(const void *record, uint64_t number);
bool torsh_torch_look_strides(const void *record, uint64_t number);
bool torsh_torch_look_many_dims(const void *record, uint64_t number);
bool torsh_torch_look_type(const void *record, uint64_t number);
bool torsh_torch_look_device(const void *record, uint64_t number);
bool torsh_torch_look_sequence(const void *record, uint64_t number);
bool torsh_torch_look_forward_thread(const void *record, uint64_t number);
bool torsh_torch_look_integer(const void *record, uint64_t number);
bool torsh_torch_look_real(const void *record, uint64_t number);
bool torsh_torch_look_list(const void *record, uint64_t number);
bool torsh_torch_look_tensors(const void *record, uint64_t number);
bool torsh_torch_look_group(const void *record, uint64_t number);

#endif
