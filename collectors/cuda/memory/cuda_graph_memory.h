/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory of CUDA graph nodes. Events are sent for memory nodes, executable graphs and their
 * launches; readers derive from them what is allocated. A call that allocates or frees in a
 * captured stream creates a node instead, which CUPTI reports inside the call.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_GRAPH_MEMORY_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_GRAPH_MEMORY_H

#include <stdbool.h>

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"
#include "shim/cuda/cupti.h"

/* A call about memory or graphs begins on this thread: drop the last node. */
void torsh_cuda_graph_memory_call_begins(void);

/* A node was created (not cloned); does nothing unless it is a memory node. */
void torsh_cuda_graph_memory_node(const struct cupti_graph *graph);

/*
 * The call returned this allocation. Returns whether a node will make it: then a graph_memory event
 * was sent, with the stack above frame.
 */
bool torsh_cuda_graph_memory_got(const struct event_device_alloc *alloc, const void *frame);

/*
 * The call freed that address. Returns whether a node will free it: then a graph_memory event was
 * sent. is_recorded: a device_free event was sent before.
 */
bool torsh_cuda_graph_memory_freed(uint32_t api, uint64_t address, bool is_recorded);

/* An executable graph was instantiated; and launched. Sent once any graph has memory nodes. */
void torsh_cuda_graph_memory_instantiated(const struct cuda_graph_instantiate *call,
					  uint64_t flags);

/* An executable graph (its handle) was launched. Sent once any graph has memory nodes. */
void torsh_cuda_graph_memory_launched(uint64_t executable);

#endif
