/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The memory that a program gets from CUDA: collectors/cuda.c hands on the calls about it. See collectors/cuda_memory.c. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda.h"

/*
 * Is this a call about memory, by the name of length bytes that CUPTI has for it, less the runtime's version? Then its
 * callbacks are to be enabled; none may run yet.
 */
int torsh_cuda_memory_wants(int domain, uint32_t id, const char *name, size_t length);

/* A call of the program's begins, none of the runtime's own; nothing where it is not about memory. */
void torsh_cuda_memory_enter(int domain, uint32_t id, const struct cupti_call *call);

/* It returns; frame: the callback's __builtin_frame_address(0). */
void torsh_cuda_memory_exit(int domain, uint32_t id, const struct cupti_call *call, const void *frame);

/* The context (a CUcontext) is about to be destroyed, with all that was allocated in it. From CUPTI's callback. */
void torsh_cuda_memory_context_ends(void *context);

#endif
