/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/critical/graph.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

uint32_t torsh_graph_add(struct graph *graph, uint64_t begin_ns, uint64_t end_ns, uint32_t what)
{
	graph->nodes =
		torsh_array_reserve(graph->nodes, graph->n, &graph->n_room, sizeof(*graph->nodes));
	graph->nodes[graph->n] = (struct graph_node){.begin_ns = begin_ns,
						     .end_ns = end_ns,
						     .what = what,
						     .first = GRAPH_NONE,
						     .last = GRAPH_NONE};
	return (uint32_t)graph->n++;
}

void torsh_graph_need(struct graph *graph, uint32_t to, uint32_t from, enum edge_kind kind,
		      uint32_t least_ns)
{
	if (from == GRAPH_NONE || to == GRAPH_NONE)
		return;
	graph->edges = torsh_array_reserve(graph->edges, graph->n_edges, &graph->edges_room,
					   sizeof(*graph->edges));
	graph->edges[graph->n_edges] = (struct graph_edge){
		.from = from, .next = graph->nodes[to].first, .kind = kind, .delay_ns = least_ns};
	graph->nodes[to].first = (uint32_t)graph->n_edges++;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct graph_node *nodes = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct graph_node *x = &nodes[i], *y = &nodes[k];

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	/* Of those that take no time, work that begins then may need one. */
	if ((x->end_ns == x->begin_ns) != (y->end_ns == y->begin_ns))
		return x->end_ns == x->begin_ns ? -1 : 1;
	return (i > k) - (i < k);
}

/* Drop the edges that times contradict; place: of each node in the order. */
static void drop_edges(struct graph *graph, uint32_t node, const uint32_t *place)
{
	uint32_t *at = &graph->nodes[node].first;

	while (*at != GRAPH_NONE) {
		const struct graph_edge *edge = &graph->edges[*at];
		uint64_t end_ns = graph->nodes[edge->from].end_ns + (uint64_t)edge->delay_ns;

		if (place[edge->from] < place[node] &&
		    end_ns <= graph->nodes[node].begin_ns + GRAPH_TOLERANCE_NS) {
			at = &graph->edges[*at].next;
			continue;
		}
		graph->n_contradicting++;
		*at = edge->next;
	}
}

/* Find what the node began for, which gets what passed from there on as its delay. */
static void find_last(struct graph *graph, struct graph_node *node)
{
	uint64_t last_ns = 0;

	for (uint32_t i = node->first; i != GRAPH_NONE; i = graph->edges[i].next) {
		const struct graph_edge *edge = &graph->edges[i];
		uint64_t end_ns = graph->nodes[edge->from].end_ns + (uint64_t)edge->delay_ns;

		if (node->last != GRAPH_NONE && end_ns <= last_ns)
			continue;
		node->last = i;
		last_ns = end_ns;
	}
	if (node->last != GRAPH_NONE) {
		struct graph_edge *last = &graph->edges[node->last];

		last->delay_ns = (int64_t)(node->begin_ns - graph->nodes[last->from].end_ns);
	}
}

void torsh_graph_settle(struct graph *graph)
{
	uint32_t *place = torsh_need_items(NULL, 0, graph->n, sizeof(*place));

	graph->order = torsh_need_items(NULL, 0, graph->n, sizeof(*graph->order));
	for (size_t i = 0; i < graph->n; i++)
		graph->order[i] = (uint32_t)i;
	if (graph->n)
		qsort_r(graph->order, graph->n, sizeof(*graph->order), compare_nodes, graph->nodes);
	for (size_t i = 0; i < graph->n; i++)
		place[graph->order[i]] = (uint32_t)i;
	for (size_t i = 0; i < graph->n; i++) {
		drop_edges(graph, (uint32_t)i, place);
		find_last(graph, &graph->nodes[i]);
	}
	free(place);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static int64_t begin_of(const struct graph *graph, const struct graph_change *change, uint32_t at,
			const int64_t *ends)
{
	const struct graph_node *node = &graph->nodes[at];
	int64_t begin_ns = INT64_MIN;

	for (uint32_t i = node->first; i != GRAPH_NONE; i = graph->edges[i].next) {
		const struct graph_edge *edge = &graph->edges[i];
		int64_t end_ns = ends[edge->from] + edge->delay_ns;

		if (change->without_sync && edge->kind == EDGE_SYNC)
			continue;
		begin_ns = end_ns > begin_ns ? end_ns : begin_ns;
	}
	return begin_ns == INT64_MIN ? (int64_t)node->begin_ns : begin_ns;
}

void torsh_graph_replay(const struct graph *graph, const struct graph_change *change, int64_t *ends)
{
	for (size_t i = 0; i < graph->n; i++) {
		uint32_t at = graph->order[i];
		const struct graph_node *node = &graph->nodes[at];
		bool is_free = change->is_free && change->is_free[node->what];

		ends[at] = begin_of(graph, change, at, ends) +
			   (is_free ? 0 : (int64_t)(node->end_ns - node->begin_ns));
	}
}

/* ---- path ------------------------------------------------------------------------------------ */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void torsh_graph_walk(const struct graph *graph, uint32_t at, uint64_t from_ns, uint64_t until_ns,
		      graph_visit *visit, void *context)
{
	const struct graph_node *node = &graph->nodes[at];

	if (node->end_ns < until_ns) {
		visit(context, node, false, until_ns - later(node->end_ns, from_ns));
		until_ns = later(node->end_ns, from_ns);
	}
	while (until_ns > from_ns) {
		uint64_t begin_ns = later(node->begin_ns, from_ns), before_ns = from_ns;
		const struct graph_node *needed = NULL;

		if (node->last != GRAPH_NONE)
			needed = &graph->nodes[graph->edges[node->last].from];
		if (needed)
			before_ns = later(needed->end_ns, from_ns);
		if (until_ns > begin_ns)
			visit(context, node, true, until_ns - begin_ns);
		until_ns = until_ns < begin_ns ? until_ns : begin_ns;
		if (until_ns > before_ns)
			visit(context, node, false, until_ns - before_ns);
		until_ns = until_ns < before_ns ? until_ns : before_ns;
		if (!needed)
			return;
		node = needed;
	}
}

void torsh_graph_free(struct graph *graph)
{
	free(graph->nodes);
	free(graph->edges);
	free(graph->order);
	*graph = (struct graph){0};
}
