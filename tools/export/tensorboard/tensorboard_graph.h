/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A graph for TensorBoard of what one step did: its outermost operators as nodes, in scopes of
 * their phase and module. An edge leads from the operator that last wrote a tensor's memory, by
 * allocating it or in place, to each that reads it, itself or by an operator within; a view has its
 * tensor's memory. An operator without such an edge has a control edge from what the same thread
 * ran before, and a backward one has one from its forward operator. Recordings without what
 * operators read have edges from what the same thread ran before instead.
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

/* To be called with each other event, which it may use to see which memory goes where. */
void torsh_tensorboard_graph_see(struct tensorboard_graph *graph,
				 const struct timeline_event *event, const struct span *innermost);

/* Write what was there, if anything was. */
void torsh_tensorboard_graph_write(const struct tensorboard_graph *graph,
				   struct tensorboard_file *tensorboard);

#endif
