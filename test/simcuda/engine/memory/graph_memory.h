/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that nodes of graphs allocate and free. Its address belongs to its node from the moment
 * that the node is added; it is alive from a launch of the graph to its free: by a node of the same
 * graph, a launch of another one, the program, or the next launch. Errors are those of result.h.
 * All functions need the lock, unless they are documented to take it.
 */
#ifndef SIMCUDA_GRAPH_MEMORY_H
#define SIMCUDA_GRAPH_MEMORY_H

#include "test/simcuda/engine/graph.h"
#include "test/simcuda/engine/memory/memory.h"

/* An address for a node that is to be added to the graph. Takes the lock. */
int sim_graph_memory_reserve(struct sim_device *device, uint32_t context,
			     const struct sim_graph *graph, size_t bytes, uint64_t *address);

/* The node was not added, or its graph is gone: -1; another graph has it: 1. Takes the lock. */
void sim_graph_memory_hold(uint64_t address, int by);

/* May a node of the graph free it? Then it is noted that one does. Takes the lock. */
bool sim_graph_memory_free_in(const struct sim_graph *graph, uint64_t address);

/* The program frees it, or a launch does, from the stream. Returns false where it is not alive. */
bool sim_graph_memory_end(uint64_t address, struct sim_memory_from from);

/* The graph is launched: 0, or 1 where what it gets is alive still, or what it frees is not. */
int sim_graph_memory_launch(const struct sim_exec *exec, const struct sim_stream *stream);

/* Give back what no graph has any more. Takes the lock. */
void sim_graph_memory_trim(struct sim_device *device);

#endif
