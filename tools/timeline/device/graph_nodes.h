/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Nodes of CUDA graphs of one process by what captured them: the visitor's own number for what was
 * open on the thread that captured a node, which its replays belong to.
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
 * Add a node that was created while `capture` was open; 0: nothing was. A clone has its
 * original's.
 */
void torsh_graph_nodes_see(struct graph_nodes *nodes, const struct event_graph_node *node,
			   uint32_t capture);

/* Returns what captured the node; 0: nothing, or the node is unknown. */
uint32_t torsh_graph_nodes_find(const struct graph_nodes *nodes, uint64_t node);

#endif
