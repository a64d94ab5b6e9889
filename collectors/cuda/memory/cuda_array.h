/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How large CUDA's arrays are, by their descriptions: CUDA itself says it nowhere. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_ARRAY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_ARRAY_H

#include "shim/cuda/cuda_memory.h"

/*
 * Bytes of what is asked for; 0: not known, or none (a sparse or deferred array is given its memory
 * by others).
 */
uint64_t torsh_cuda_array_bytes(enum cuda_memory_action action, const void *parameters);

/* Bytes of one element; 0: the format has no such, or is not known. */
uint32_t torsh_cuda_array_element_bytes(int format, unsigned n_channels);

#endif
