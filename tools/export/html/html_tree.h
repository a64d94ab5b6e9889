/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A tree of frames with the weights of each path from the root: at the peak, leaked, and so on.
 * The page draws flame graphs from it and computes its tables of lines and stacks. Nodes that are
 * too small for the page are merged into one node of others per parent.
 */
#ifndef TORSH_EXPORT_HTML_TREE_H
#define TORSH_EXPORT_HTML_TREE_H

#include "tools/export/html/html_frames.h"

/*
 * WEIGHT(NAME, name). highest: the maximum over the moments, by stack; it only decides which nodes
 * are kept, and is not on the page.
 */
#define HTML_WEIGHTS                 \
	WEIGHT(PEAK, peak)           \
	WEIGHT(LEAKED, leaked)       \
	WEIGHT(LIVE, live)           \
	WEIGHT(ALLOCATED, allocated) \
	WEIGHT(TEMPORARY, temporary) \
	WEIGHT(MAPPED, mapped)       \
	WEIGHT(HIGHEST, highest)

enum html_weight {
#define WEIGHT(NAME, name) HTML_##NAME,
	HTML_WEIGHTS
#undef WEIGHT
		N_HTML_WEIGHTS
};

/* A larger limit means all nodes, as many as a browser can hold. */
#define HTML_NODES_WHOLE (1u << 18)

struct html_value {
	uint64_t blocks, bytes;
};

struct html_values {
	struct html_value self[N_HTML_WEIGHTS];
};

struct html_node {
	uint32_t parent; /* lower than its own number; the root is 0 */
	uint32_t frame;
	uint32_t number; /* on the page; for a dropped node that of its others */
	uint32_t values; /* number + 1 of its own weights; 0: it has none, as most nodes */
};

struct html_tree {
	struct html_node *nodes;
	size_t n, n_room;
	struct html_values *values;
	size_t n_values, values_room;
	struct key_index children; /* keyed by parent and frame */
};

/* Create a tree that is a root alone. */
void torsh_html_tree_create(struct html_tree *tree);
void torsh_html_tree_free(struct html_tree *tree);

/* Free what finds children: the tree gets no more. */
void torsh_html_tree_end_growth(struct html_tree *tree);

/* Returns the child of a node for a frame, created if it is new. */
uint32_t torsh_html_tree_child(struct html_tree *tree, uint32_t parent, uint32_t frame);

/* Add to a node's own weight. */
void torsh_html_tree_add(struct html_tree *tree, uint32_t node, enum html_weight weight,
			 uint64_t blocks, uint64_t bytes);

/*
 * Put the tree as a member: the columns parent (how many nodes before), frame, and bytes and
 * blocks of each weight, for at most n_max nodes plus those of others. The kept nodes have the
 * largest shares of some weight. "left_out": number of dropped nodes.
 */
void torsh_html_tree_put(struct html_tree *tree, const char *name, struct html_frames *frames,
			 struct json_writer *json, size_t n_max);

#endif
