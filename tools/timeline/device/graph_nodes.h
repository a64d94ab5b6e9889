/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Nodes of CUDA graphs and what requested them: what was open on the thread that captured a node,
 * which is what its replays belong to. Of one process; a visitor's own number stands for what was
 * open.
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
void torsh_graph_nodes_destroy(struct graph_nodes *nodes);

/*
 * A node came into being inside of what capture stands for; 0: of nothing. A clone has its
 * original's.
 */
void torsh_graph_nodes_see(struct graph_nodes *nodes, const struct event_graph_node *node,
			   uint32_t capture);

/* What the node was captured in; 0: nothing, or it is none that was seen. */
uint32_t torsh_graph_nodes_find(const struct graph_nodes *nodes, uint64_t node);

#endif
