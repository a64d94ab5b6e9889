/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The graph in the comment over a kernel that Inductor generated: "Original ATen: [...]" and "Graph
 * fragment:", a node in each line. A node's name also is the name of the buffer that it becomes,
 * which a kernel may read ("PlaceHolder") and write ("return"). The text is from an untrusted file;
 * what is found refers to it.
 */
#ifndef TORSH_OPS_FUSED_GRAPH_H
#define TORSH_OPS_FUSED_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUSED_NODES_MAX 512u

struct fused_word {
	const char *text;
	size_t n;
};

/* A line: '%mm : Tensor "f32[8, 4][4, 1]cuda:0" = call_function[target=T](args = (%a, 1), ...' */
struct fused_node {
	struct fused_word name, sizes /* "8, 4" */, target, arguments /* "%a, 1), kwargs = {})" */;
	bool is_read, is_tensor;
};

struct fused_graph {
	struct fused_word operators; /* "aten.mm, aten.relu" */
	struct fused_word results; /* "%mm,%relu": what the kernel writes */
	struct fused_node nodes[FUSED_NODES_MAX];
	size_t n;
	bool is_cut; /* there are more nodes, or a longer line: what follows is not read */
};

static inline bool torsh_fused_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool torsh_fused_is_word(struct fused_word word, const char *text);

/* texts: up to NULL. */
bool torsh_fused_is_one_of(struct fused_word word, const char *const *texts);

/* Read the comment into a graph that is all zero. */
void torsh_fused_parse(struct fused_graph *graph, const char *text);

/* Returns the node of a tensor, or NULL. */
const struct fused_node *torsh_fused_find_node(const struct fused_graph *graph,
					       struct fused_word name);

/* Get the number of elements. Returns false if a size is not a number, or if 64 bits don't do. */
bool torsh_fused_count_elements(const struct fused_node *node, uint64_t *n);

/* Returns "mm" of torch.ops.aten.mm.default; n is 0 for another target. */
struct fused_word torsh_fused_operator(const struct fused_node *node);

/*
 * Returns whether another kernel has computed the node: this one reads it, and does not write it,
 * as a template does with what is fused behind its product.
 */
bool torsh_fused_is_from_elsewhere(const struct fused_graph *graph, const struct fused_node *node);

#endif
