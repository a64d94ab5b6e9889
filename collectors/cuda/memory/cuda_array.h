/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The sizes of CUDA arrays, computed from their descriptors: CUDA has no query for them. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_ARRAY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_ARRAY_H

#include "shim/cuda/cuda_memory.h"

/*
 * Bytes of the array that a call requests; 0: unknown format, or no memory of its own (a sparse or
 * deferred array). parameters: the struct for action.
 */
uint64_t torsh_cuda_array_bytes(enum cuda_memory_action action, const void *parameters);

/*
 * Bytes of one element (CUarray_format and channels); 0: unknown format, or one without elements of
 * a fixed size.
 */
uint32_t torsh_cuda_array_element_bytes(int format, unsigned n_channels);

#endif
