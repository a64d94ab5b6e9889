/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A tree of frames with the weights of each path from the root: at the peak, leaked, and so on.
 * The page draws flame graphs from it and computes its tables of lines and stacks.
 *
 * A tree grows, to millions of nodes, is pruned to those of the page, and is put. Nodes that are
 * too small for the page are merged into one node of others per parent.
 */
#ifndef TORSH_EXPORT_HTML_TREE_H
#define TORSH_EXPORT_HTML_TREE_H

#include "tools/base/containers/usage_list.h"
#include "tools/export/html/html_frames.h"

/*
 * WEIGHT(NAME, name). cpu and waited: nanoseconds, and samples or waits. highest: the maximum over
 * the moments, by stack; it only decides which nodes are kept, and is not on the page.
 */
#define HTML_WEIGHTS                 \
	WEIGHT(PEAK, peak)           \
	WEIGHT(LEAKED, leaked)       \
	WEIGHT(LIVE, live)           \
	WEIGHT(ALLOCATED, allocated) \
	WEIGHT(TEMPORARY, temporary) \
	WEIGHT(MAPPED, mapped)       \
	WEIGHT(CPU, cpu)             \
	WEIGHT(WAITED, waited)       \
	WEIGHT(HIGHEST, highest)

enum html_weight {
#define WEIGHT(NAME, name) HTML_##NAME,
	HTML_WEIGHTS
#undef WEIGHT
		N_HTML_WEIGHTS
};

/* A larger limit means all nodes, as many as a browser can hold. */
#define HTML_NODES_WHOLE (1u << 18)

/* A larger limit means all nodes, as many as a browser can hold. */
#define HTML_NODES_WHOLE (1u << 18)

struct html_value {
	uint64_t blocks, bytes;
};

/* A node while the tree grows. */
struct html_grown {
	/* lower than its own number; the root is 0. Once pruned: the node that it is in */
	uint32_t parent;
	uint32_t frame;
};

/* A node of the pruned tree, in the order in which the tree grew. */
struct html_node {
	uint32_t parent; /* lower than its own number; the root is 0 */
	uint32_t frame;
	uint32_t number; /* on the page; for a dropped node that of its others */
	uint32_t others; /* while pruned: number of its others; 0: none yet */
	bool is_others;
	float share; /* the largest one of any weight in its subtree */
	struct html_value self[N_HTML_WEIGHTS]; /* its own weights */
};

struct html_tree {
	struct html_grown *grown;
	size_t n_grown, grown_room;
	uint32_t *children; /* numbers of nodes, hashed by parent and frame; 0: empty */
	uint32_t n_children; /* a power of 2 */
	struct usage_list weights[N_HTML_WEIGHTS]; /* of grown nodes */

	struct html_node *nodes;
	size_t n, n_room;
	size_t n_dropped; /* nodes that are in others already */
};

/* Create a tree that is a root alone. */
void torsh_html_tree_create(struct html_tree *tree);
void torsh_html_tree_free(struct html_tree *tree);

/* Returns the child of a node for a frame, created if it is new. */
uint32_t torsh_html_tree_child(struct html_tree *tree, uint32_t parent, uint32_t frame);

/* Add to a node's own weight. */
void torsh_html_tree_add(struct html_tree *tree, uint32_t node, enum html_weight weight,
			 uint64_t blocks, uint64_t bytes);

/*
 * End the growth: of at most n_max nodes, those with the largest shares of some weight, and their
 * others are left, which then have the weights. A larger limit of torsh_html_tree_put is no use.
 */
void torsh_html_tree_prune(struct html_tree *tree, size_t n_max);

/* Returns the node of the pruned tree that a grown node is in, until the grown ones are freed. */
uint32_t torsh_html_tree_pruned(const struct html_tree *tree, uint32_t grown);

/* Free the grown nodes of a pruned tree. */
void torsh_html_tree_free_grown(struct html_tree *tree);

/*
 * Put a pruned tree as a member: the columns parent (how many nodes before), frame, and bytes and
 * blocks of each weight, for at most n_max nodes plus those of others. "left_out": number of
 * dropped nodes.
 */
void torsh_html_tree_put(struct html_tree *tree, const char *name, struct html_frames *frames,
			 struct json_writer *json, size_t n_max);

#endif
