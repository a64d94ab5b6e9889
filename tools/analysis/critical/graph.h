/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A graph of what had to come before what, as it was recorded. A node is work on a lane, a thread
 * or a stream, or the end of a wait, which takes no time by itself. It begins when all that it
 * needs has ended. What passes between the last of that and its begin, such as a launch on its way,
 * is the delay of that need; of the others it is what is known to be the least. So the recorded
 * times come out again, and others where work is left out.
 */
#ifndef TORSH_ANALYSIS_CRITICAL_GRAPH_H
#define TORSH_ANALYSIS_CRITICAL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum edge_kind {
	EDGE_ORDER, /* of a thread */
	EDGE_LAUNCH, /* from the call to what it launched */
	EDGE_STREAM, /* the order of a stream */
	EDGE_STREAMS, /* from one stream to another that waits for its event */
	EDGE_SYNC, /* from a device's work to the thread that waits for it */
	EDGE_WAKE, /* from a thread to one that waits for it */
	N_EDGE_KINDS
};

#define GRAPH_NONE UINT32_MAX
/* Clocks of host and device differ by less. */
#define GRAPH_TOLERANCE_NS 1000u

struct graph_edge {
	uint32_t from, next; /* next: of the same node; GRAPH_NONE: none */
	enum edge_kind kind;
	int64_t delay_ns; /* until the node can begin; below 0: the clocks differ */
};

struct graph_node {
	uint64_t begin_ns, end_ns;
	uint32_t what; /* the caller's number */
	uint32_t first; /* edge */
	/* by torsh_graph_settle */
	uint32_t last; /* the edge that it began for; GRAPH_NONE: it needs nothing that is known */
};

/* Starts as {0}. */
struct graph {
	struct graph_node *nodes;
	size_t n, n_room;
	struct graph_edge *edges;
	size_t n_edges, edges_room;
	uint32_t *order; /* of the nodes, by begin */
	uint32_t n_contradicting; /* edges that times contradict; they are left out */
};

/* Add a node. Those of a lane come in the order of time. Returns its number. */
uint32_t torsh_graph_add(struct graph *graph, uint64_t begin_ns, uint64_t end_ns, uint32_t what);

/* The node `to` needs the node `from`, least_ns before it; GRAPH_NONE: nothing is added. */
void torsh_graph_need(struct graph *graph, uint32_t to, uint32_t from, enum edge_kind kind,
		      uint32_t least_ns);

/* After the last: put the nodes in order, and find what each of them began for. */
void torsh_graph_settle(struct graph *graph);

/* Work that takes no time, by what it is, and waits for devices that are left out. */
struct graph_change {
	const bool *is_free; /* NULL: none is */
	bool without_sync; /* without EDGE_SYNC */
};

/* Compute when each node ends with that change: an item of ends for each. */
void torsh_graph_replay(const struct graph *graph, const struct graph_change *change,
			int64_t *ends);

/* Gets a piece of a path: the node's work, or the time between that and what it needed. */
typedef void graph_visit(void *context, const struct graph_node *node, bool is_work, uint64_t ns);

/*
 * Follow what a node began for, from until_ns, which is not before its end, back to from_ns. The
 * pieces add up to the time between both.
 */
void torsh_graph_walk(const struct graph *graph, uint32_t node, uint64_t from_ns, uint64_t until_ns,
		      graph_visit *visit, void *context);

/* Free the graph. */
void torsh_graph_free(struct graph *graph);

#endif
