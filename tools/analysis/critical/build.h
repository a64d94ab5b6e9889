/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From lanes and device work to the graph of what had to come before what. */
#ifndef TORSH_ANALYSIS_CRITICAL_BUILD_H
#define TORSH_ANALYSIS_CRITICAL_BUILD_H

#include "tools/analysis/critical/lanes.h"
#include "tools/base/containers/hash_map.h"

/* The work of a stream, in the order of its begins. */
struct stream {
	const struct device_piece *pieces;
	size_t n;
	uint32_t first_node; /* of the graph; the others follow */
};

/* What a node is. */
struct node_what {
	enum critical_kind kind;
	const char *name; /* NULL: none */
	uint32_t lane; /* a thread; from the number of threads on a stream */
};

struct built {
	struct lanes *lanes;
	struct graph graph;
	struct node_what *whats;
	size_t n_whats, whats_room;
	struct hash_map known;
	struct stream *streams;
	size_t n_streams, streams_room;
	uint32_t launch_ns; /* what a launch takes at least until its work begins */
	uint64_t n_guessed; /* waits for devices whose end is taken from times alone */
};

/*
 * Build the graph; steps: those whose bounds nodes of the main thread end at. The pieces are put
 * into another order. The caller frees it.
 */
void torsh_built_make(struct built *built, struct lanes *lanes, struct collected *collected,
		      const struct step *steps, size_t n_steps);

/* Returns the last node of the thread that ends at that moment or before, or GRAPH_NONE. */
uint32_t torsh_built_node(const struct built *built, uint32_t thread, uint64_t at_ns);

/* Returns the number of what a node is. */
uint32_t torsh_built_what(struct built *built, enum critical_kind kind, const char *name,
			  uint32_t lane);

/* Add the nodes of devices, and the needs of what waits for them. */
void torsh_built_add_devices(struct built *built, struct collected *collected);

/* The device work whose end a call waited for: one of each stream at most, of n_room. */
size_t torsh_built_awaited(struct built *built, const struct device_sync *sync, uint32_t *nodes,
			   size_t n_room);

/* Free the graph. */
void torsh_built_free(struct built *built);

#endif
