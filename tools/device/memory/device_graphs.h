/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that nodes of a process's CUDA graphs allocate and free: a graph launch runs each of its
 * nodes in their creation order, as if the program had made the calls.
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
		/* a prefix: the steps that the graph had at instantiation */
		size_t graph, n;
	} * executables;
	size_t n_graphs, graphs_room, n_executables, executables_room;
	struct key_index graphs_by_number, executables_by_handle;
};

/* Begin without graphs; torsh_device_graphs_destroy frees them. */
void torsh_device_graphs_create(struct device_graphs *graphs);

/* Free the graphs. */
void torsh_device_graphs_destroy(struct device_graphs *graphs);

/* Called for each allocation and free of a launch. */
typedef void device_graphs_visit(void *context, const struct event *event,
				 const struct device_origin *origin);

/*
 * Take any event; origin is the event's own, visit changes blocks. Returns true if it was about
 * graphs. Allocations of a launch have the stack, operator and module of their node, and the time,
 * thread and step of the launch.
 */
bool torsh_device_graphs_take(struct device_graphs *graphs, const struct device_blocks *blocks,
			      const struct event *event, const struct device_origin *origin,
			      device_graphs_visit *visit, void *context);

#endif
