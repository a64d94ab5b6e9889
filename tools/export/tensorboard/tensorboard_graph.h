/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A graph for TensorBoard of what one step did: its outermost operators as nodes, in scopes of
 * their phase and module. Which tensor went where isn't recorded: an edge leads to what the same
 * thread ran next, and a control edge from a forward operator to its backward.
 */
#ifndef TORSH_EXPORT_TENSORBOARD_TENSORBOARD_GRAPH_H
#define TORSH_EXPORT_TENSORBOARD_TENSORBOARD_GRAPH_H

#include "tools/export/tensorboard/tensorboard_file.h"
#include "tools/export/trace.h"

struct tensorboard_graph;

/* Of the spans that begin from from_ns up to to_ns. */
struct tensorboard_graph *torsh_tensorboard_graph_create(uint64_t from_ns, uint64_t to_ns);

/* Free the graph. */
void torsh_tensorboard_graph_destroy(struct tensorboard_graph *graph);

/* To be called with each span of the process that begins; span->own is the graph's. */
void torsh_tensorboard_graph_begin(struct tensorboard_graph *graph, struct span *span);

/* Write what was there, if anything was. */
void torsh_tensorboard_graph_write(const struct tensorboard_graph *graph,
				   struct tensorboard_file *tensorboard);

#endif
