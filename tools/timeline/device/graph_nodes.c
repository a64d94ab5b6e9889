/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/graph_nodes.h"

#include <stddef.h>

void torsh_graph_nodes_create(struct graph_nodes *nodes)
{
	torsh_key_index_create(&nodes->index);
}

void torsh_graph_nodes_destroy(struct graph_nodes *nodes)
{
	torsh_key_index_destroy(&nodes->index);
}

void torsh_graph_nodes_see(struct graph_nodes *nodes, const struct event_graph_node *node,
			   uint32_t capture)
{
	struct key_slot *slot;

	if (!node->node)
		return;
	if (node->original)
		capture = torsh_graph_nodes_find(nodes, node->original);
	slot = torsh_key_index_find(&nodes->index, node->node);
	if (!slot->key)
		torsh_key_index_fill(&nodes->index, slot, node->node, capture);
	else if (node->original)
		/*
		 * An instantiation also creates clones of the nodes, within whatever span is open
		 * then.
		 */
		slot->number = capture;
}

uint32_t torsh_graph_nodes_find(const struct graph_nodes *nodes, uint64_t node)
{
	const struct key_slot *slot = node ? torsh_key_index_find(&nodes->index, node) : NULL;

	return slot && slot->key ? slot->number : 0;
}
