/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that nodes of a process's CUDA graphs get and free: a launch of a graph is what each of
 * its nodes does, one after the other in the order in which they were made, as if the program had
 * done it.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_GRAPHS_H
#define TORSH_DEVICE_MEMORY_DEVICE_GRAPHS_H

#include "tools/base/containers/key_index.h"
#include "tools/device/memory/device_blocks.h"

struct graph_step;

struct device_graphs {
	struct graph_with_memory {
		struct graph_step *steps;
		size_t n, n_room;
	} * graphs;
	struct executable_graph {
		bool frees_at_launch;
		/* the first n steps of that graph, which it had when this was made */
		size_t graph, n;
	} * executables;
	size_t n_graphs, graphs_room, n_executables, executables_room;
	struct key_index graphs_by_number, executables_by_handle;
};

/* Begin without graphs; torsh_device_graphs_destroy frees them. */
void torsh_device_graphs_create(struct device_graphs *graphs);
void torsh_device_graphs_destroy(struct device_graphs *graphs);

/* Called with each of a launch's allocations and frees. */
typedef void device_graphs_visit(void *context, const struct event *event,
				 const struct device_origin *origin);

/*
 * Take an event, whatever it is; origin is its own, blocks are those that visit changes. Returns
 * whether it was about graphs. What a launch gets has the stack, operator and module of its node,
 * and the time, thread and step of the launch.
 */
bool torsh_device_graphs_take(struct device_graphs *graphs, const struct device_blocks *blocks,
			      const struct event *event, const struct device_origin *origin,
			      device_graphs_visit *visit, void *context);

#endif
