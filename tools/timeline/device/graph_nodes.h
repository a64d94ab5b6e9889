/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Nodes of CUDA graphs and their requesters: the visitor's own number for what was open on the
 * thread that captured a node, which is also charged for the node's replays. Of one process.
 */
#ifndef TORSH_TIMELINE_DEVICE_GRAPH_NODES_H
#define TORSH_TIMELINE_DEVICE_GRAPH_NODES_H

#include "agent/wire/event.h"
#include "tools/base/containers/key_index.h"

struct graph_nodes {
	struct key_index index; /* by node: the number */
};

/* Begin without nodes; torsh_graph_nodes_destroy frees them. */
void torsh_graph_nodes_create(struct graph_nodes *nodes);

/* Free the nodes. */
void torsh_graph_nodes_destroy(struct graph_nodes *nodes);

/*
 * Add a node that was created inside of what capture refers to; 0: nothing. A clone has its
 * original's.
 */
void torsh_graph_nodes_see(struct graph_nodes *nodes, const struct event_graph_node *node,
			   uint32_t capture);

/* Returns what the node was captured in; 0: nothing, or the node is unknown. */
uint32_t torsh_graph_nodes_find(const struct graph_nodes *nodes, uint64_t node);

#endif
