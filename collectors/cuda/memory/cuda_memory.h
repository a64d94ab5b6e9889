/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory that a program gets from CUDA, and gives back, by its calls. See
 * collectors/cuda/memory/cuda_memory.c.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda/cuda.h"

/* A call about memory as it is seen. */
struct cuda_memory_call {
	const void *parameters; /* as shim/cuda/cuda_memory.h has them */
	uint32_t context; /* that is current, by its number; 0: none */
	uint32_t device; /* that context's, or DEVICE_NOT_KNOWN; as the call returns */
};

/*
 * The number of the call about memory that has this name of length bytes, less the runtime's
 * version; 0: it is none, or memory is not recorded. Takes labels: before calls are seen.
 */
uint32_t torsh_cuda_memory_find(const char *name, size_t length);

/* A call of the program's begins, none of the runtime's own. number: as it was found. */
void torsh_cuda_memory_begins(uint32_t number, const struct cuda_memory_call *call);

/*
 * It returns result. frame: __builtin_frame_address(0) of who was called by CUPTI or by what
 * interposes the driver.
 */
void torsh_cuda_memory_ends(uint32_t number, const struct cuda_memory_call *call, int result,
			    const void *frame);

/* The context with this number ends, with all that was allocated in it. */
void torsh_cuda_memory_context_ends(uint32_t context);

/* ---- collectors/cuda/memory/cuda_memory_callbacks.c: calls as CUPTI calls back ---- */

/*
 * Is this a call about memory, by CUPTI's name? Then its callbacks are to be enabled; none may run
 * yet.
 */
int torsh_cuda_memory_wants(int domain, uint32_t id, const char *name, size_t length);

/* A call begins, and returns, whichever it is; frame: the callback's __builtin_frame_address(0). */
void torsh_cuda_memory_enter(int domain, uint32_t id, const struct cupti_call *call);
void torsh_cuda_memory_exit(int domain, uint32_t id, const struct cupti_call *call,
			    const void *frame);

/* The context (a CUcontext) is about to be destroyed. */
void torsh_cuda_memory_context_destroyed(void *context);

/* ---- collectors/cuda/memory/cuda_memory_driver.c: calls as the driver's entry points see them  */

/* Before the entry points are watched. */
void torsh_cuda_memory_watch_driver(void);

#endif
