/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls about memory, as CUPTI calls back around them. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_CALLBACKS_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/cupti.h"

/*
 * Whether the call with this CUPTI id and name is about memory: then its callbacks are enabled.
 * Before any callback runs.
 */
bool torsh_cuda_memory_wants(int domain, uint32_t id, const char *name, size_t length);

/* Any call begins. is_inner: inside of another one. */
void torsh_cuda_memory_enter(int domain, uint32_t id, const struct cupti_call *call, bool is_inner);

/* A call returns. frame: __builtin_frame_address(0) of the callback. */
void torsh_cuda_memory_exit(int domain, uint32_t id, const struct cupti_call *call, bool is_inner,
			    const void *frame);

/* The context (a CUcontext) is about to be destroyed. */
void torsh_cuda_memory_context_destroyed(void *context);

#endif
