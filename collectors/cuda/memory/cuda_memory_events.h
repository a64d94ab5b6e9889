/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls by which a program allocates and frees device memory, as events: cuda_memory_callbacks.c
 * receives them from CUPTI, cuda_memory_driver.c from the interposed driver; cuda_request.c reads
 * their parameters, cuda_graph_memory.c records memory of CUDA graphs, cuda_memory_info.c queries
 * free and total bytes.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_EVENTS_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call about memory. */
struct cuda_memory_call {
	const void *parameters; /* one of the structs of shim/cuda/cuda_memory.h */
	uint32_t context; /* number of the current one; 0: none */
	/* of that context, or DEVICE_NOT_KNOWN; when the call returns, or loads code */
	uint32_t device;
};

/*
 * The number of the call about memory with this name of length bytes, without the runtime's version
 * suffix; 0: no such call, or memory is not recorded. Before any call is recorded: interns labels.
 */
uint32_t torsh_cuda_memory_find(const char *name, size_t length);

/*
 * Whether the call loads or unloads code: it is sent even inside of a call of the runtime, which
 * loads code when it needs some.
 */
bool torsh_cuda_memory_is_of_code(uint32_t number);

/* A call of the program begins; calls that the runtime makes inside are left out. */
void torsh_cuda_memory_begins(uint32_t number, const struct cuda_memory_call *call);

/*
 * The call returns result. frame: __builtin_frame_address(0) of the function that CUPTI called, or
 * of the driver's wrapper; stacks start above it.
 */
void torsh_cuda_memory_ends(uint32_t number, const struct cuda_memory_call *call, int result,
			    const void *frame);

/* The context with this number ends, and everything allocated in it. */
void torsh_cuda_memory_context_ends(uint32_t context);

#endif
