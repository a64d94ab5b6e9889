/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of a process at any moment, for the page: by stack, each with its nodes in the trees
 * of the page. Stacks with equal nodes form a group on the page; each moment lists the groups that
 * changed since the previous one.
 */
#ifndef TORSH_EXPORT_HTML_MOMENTS_H
#define TORSH_EXPORT_HTML_MOMENTS_H

#include "tools/base/containers/sparse_array.h"
#include "tools/memory/moments.h"

/* The trees in which a stack has a node. */
enum html_moment_tree { HTML_IN_MERGED, HTML_IN_NATIVE, HTML_IN_SCOPES, N_HTML_MOMENT_TREES };

struct html_moment_stack {
	uint64_t bytes; /* maximum over the moments */
	uint32_t stack;
	uint32_t nodes[N_HTML_MOMENT_TREES];
};

/* Moments of one process. */
struct html_moments {
	struct memory_moments all;
	struct html_moment_stack *stacks; /* with memory at some moment */
	size_t n_stacks, n_room;
	struct sparse_array number_of; /* uint32_t by stack: its index in stacks + 1; 0: none */
};

struct html_page;

/*
 * Collect the moments of each process. Call it before the trees are built, which number the
 * stacks.
 */
void torsh_html_moments_collect(struct html_page *page);

/* Put the member "moments"; after the trees, which number their nodes. */
void torsh_html_moments_put(struct html_page *page);
void torsh_html_moments_free(struct html_page *page);

#endif
