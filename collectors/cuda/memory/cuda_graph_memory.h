/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that nodes of CUDA graphs get and free: what is told are the nodes, the executable graphs
 * and their launches, from which readers know what is alive. A call that gets or frees memory in a
 * stream that is captured makes a node instead; CUPTI tells of that within the call.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_GRAPH_MEMORY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_GRAPH_MEMORY_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"
#include "shim/cuda/cupti.h"

/*
 * The calling thread is in a call of the program's about memory or graphs; no node was made in it
 * yet.
 */
void torsh_cuda_graph_memory_call_begins(void);

/* A node came into being, no clone; nothing where it is not about memory. */
void torsh_cuda_graph_memory_node(const struct cupti_graph *graph);

/*
 * The call got this, at that address. Returns whether a node is to get it: then that is told, with
 * the stack of the frame.
 */
int torsh_cuda_graph_memory_got(const struct event_device_alloc *alloc, const void *frame);

/*
 * The call succeeded in freeing that address. Returns whether a node is to free it: then that is
 * told. is_told: it was told as a device_free.
 */
int torsh_cuda_graph_memory_freed(uint32_t api, uint64_t address, uint32_t is_recorded);

/* An executable graph was made, or launched; told as soon as some graph has memory. */
void torsh_cuda_graph_memory_instantiated(const struct cuda_graph_instantiate *call,
					  uint64_t flags);
void torsh_cuda_graph_memory_launched(uint64_t executable);

#endif
