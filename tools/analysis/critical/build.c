/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/critical/build.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define STREAMS_AWAITED_MAX 64u

uint32_t torsh_built_what(struct built *built, enum critical_kind kind, const char *name,
			  uint32_t lane)
{
	struct node_what what;
	size_t i;

	memset(&what, 0, sizeof(what));
	what.kind = kind;
	what.name = name;
	what.lane = lane;
	i = torsh_hash_map_put(&built->known, &what, sizeof(what), built->n_whats)->value;
	if (i < built->n_whats)
		return (uint32_t)i;
	built->whats = torsh_array_reserve(built->whats, built->n_whats, &built->whats_room,
					   sizeof(*built->whats));
	built->whats[built->n_whats] = what;
	return (uint32_t)built->n_whats++;
}

uint32_t torsh_built_node(const struct built *built, uint32_t thread, uint64_t at_ns)
{
	const struct lane *lane = &built->lanes->items[thread];
	size_t low = 0, high;

	if (thread >= built->lanes->n)
		return GRAPH_NONE;
	high = lane->n_nodes;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (built->graph.nodes[lane->first_node + middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? lane->first_node + (uint32_t)low - 1 : GRAPH_NONE;
}

/* ---- threads --------------------------------------------------------------------------------- */

static int compare_moments(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Add a node that follows the last one of its lane. */
static void follow(struct built *built, struct lane *lane, const struct segment *segment,
		   uint64_t begin_ns, uint64_t end_ns)
{
	uint32_t what = torsh_built_what(built, segment->kind, segment->name, lane->thread);
	uint32_t node = torsh_graph_add(&built->graph, begin_ns, end_ns, what);

	if (lane->n_nodes++)
		torsh_graph_need(&built->graph, node, node - 1, EDGE_ORDER, 0);
}

static void add_lane(struct built *built, struct lane *lane)
{
	size_t cut = 0;

	if (lane->n_cuts)
		qsort(lane->cuts, lane->n_cuts, sizeof(*lane->cuts), compare_moments);
	lane->first_node = (uint32_t)built->graph.n;
	for (size_t i = 0; i < lane->n; i++) {
		const struct segment *segment = &lane->segments[i];
		uint64_t at_ns = segment->begin_ns;

		if (segment->has_waker || segment->sync) {
			follow(built, lane, segment, segment->end_ns, segment->end_ns);
			continue;
		}
		for (; cut < lane->n_cuts && lane->cuts[cut] < segment->end_ns; cut++) {
			if (lane->cuts[cut] <= at_ns)
				continue;
			follow(built, lane, segment, at_ns, lane->cuts[cut]);
			at_ns = lane->cuts[cut];
		}
		follow(built, lane, segment, at_ns, segment->end_ns);
	}
}

/* The node of a wait: the last one of its lane that ends with it. */
static uint32_t node_of(const struct built *built, const struct lane *lane,
			const struct segment *wait)
{
	return torsh_built_node(built, lane->thread, wait->end_ns);
}

static void add_needs(struct built *built, const struct lane *lane)
{
	uint32_t awaited[STREAMS_AWAITED_MAX];

	for (size_t i = 0; i < lane->n; i++) {
		const struct segment *wait = &lane->segments[i];
		uint32_t node = wait->has_waker || wait->sync ? node_of(built, lane, wait) : 0;
		size_t n = wait->sync ? torsh_built_awaited(built, wait->sync, awaited,
							    STREAMS_AWAITED_MAX)
				      : 0;

		if (wait->has_waker)
			torsh_graph_need(&built->graph, node,
					 torsh_built_node(built, wait->waker, wait->waker_ns),
					 EDGE_WAKE, 0);
		for (size_t k = 0; k < n; k++)
			torsh_graph_need(&built->graph, node, awaited[k], EDGE_SYNC, 0);
	}
}

/* A thread that does something for the first time does it for the main thread. */
static void add_start(struct built *built, const struct lane *lane)
{
	const struct lanes *lanes = built->lanes;

	if (lane->thread != lanes->main && lane->n_nodes &&
	    lane->begin_ns > lanes->collected->from_ns)
		torsh_graph_need(&built->graph, lane->first_node,
				 torsh_built_node(built, lanes->main, lane->begin_ns), EDGE_WAKE,
				 0);
}

static void cut_lanes(struct lanes *lanes, const struct collected *collected,
		      const struct step *steps, size_t n_steps)
{
	for (size_t i = 0; i < n_steps; i++) {
		torsh_lane_cut(lanes, lanes->main, steps[i].start_ns);
		torsh_lane_cut(lanes, lanes->main, steps[i].end_ns);
	}
	for (size_t i = 0; i < collected->n_pieces; i++) {
		if (collected->pieces[i].has_launch)
			torsh_lane_cut(lanes, collected->pieces[i].thread,
				       collected->pieces[i].launched_ns);
	}
	for (size_t i = 0; i < lanes->n; i++) {
		if (lanes->items[i].n && i != lanes->main)
			torsh_lane_cut(lanes, lanes->main, lanes->items[i].begin_ns);
	}
}

void torsh_built_make(struct built *built, struct lanes *lanes, struct collected *collected,
		      const struct step *steps, size_t n_steps)
{
	*built = (struct built){.lanes = lanes};
	cut_lanes(lanes, collected, steps, n_steps);
	for (size_t i = 0; i < lanes->n; i++)
		add_lane(built, &lanes->items[i]);
	for (size_t i = 0; i < lanes->n; i++)
		add_start(built, &lanes->items[i]);
	torsh_built_add_devices(built, collected);
	for (size_t i = 0; i < lanes->n; i++)
		add_needs(built, &lanes->items[i]);
	torsh_graph_settle(&built->graph);
}

void torsh_built_free(struct built *built)
{
	torsh_graph_free(&built->graph);
	torsh_hash_map_free(&built->known);
	free(built->whats);
	free(built->streams);
	*built = (struct built){0};
}
