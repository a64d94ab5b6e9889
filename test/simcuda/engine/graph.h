/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Graphs: nodes of work with their dependencies. An executable graph is a clone with node ids of
 * its own. A graph belongs to the program, and is used by one thread at a time, as the interface
 * demands.
 */
#ifndef SIMCUDA_GRAPH_H
#define SIMCUDA_GRAPH_H

#include "test/simcuda/engine/device.h"

struct sim_graph_node {
	uint64_t id; /* the graph's id above 32 bits of its number */
	struct sim_graph *graph;
	struct sim_work work;
	struct sim_graph_node **after;
	size_t n_after;
	struct sim_graph_node *original; /* in the graph that was cloned */
	struct sim_op *op; /* while it is being launched */
	bool is_removed;
	bool has_mark; /* of a walk over the graph */
};

struct sim_graph {
	uint32_t magic, id;
	struct sim_graph_node **nodes;
	size_t n_nodes, capacity;
	bool has_memory; /* a node gets or frees some: graph_memory.h */
	unsigned n_execs;
	struct sim_user_object **objects;
	size_t n_objects;
};

struct sim_exec {
	uint32_t magic, id;
	struct sim_graph *graph; /* sorted: what a node depends on comes before it */
	struct sim_graph *source; /* the graph that it is a clone of; it may be destroyed */
	bool frees_at_launch; /* what its last launch got and nobody freed */
	/* the end of its last launch: the next begins no earlier; a reference */
	struct sim_op *last;
};

/* Something of the program's that lives as long as graphs need it. */
struct sim_user_object {
	void (*destroy)(void *data);
	void *data;
	unsigned n_refs;
};

bool sim_graph_is_live(const struct sim_graph *graph);
bool sim_exec_is_live(const struct sim_exec *exec);

struct sim_graph *sim_graph_create(void);
struct sim_graph *sim_graph_clone(struct sim_graph *graph);
void sim_graph_destroy(struct sim_graph *graph);

/* Returns NULL when something that it is to come after is of another graph. */
struct sim_graph_node *sim_graph_add(struct sim_graph *graph, const struct sim_work *work,
				     struct sim_graph_node *const *after, size_t n_after);
void sim_graph_depend(struct sim_graph_node *node, struct sim_graph_node *const *after,
		      size_t n_after);
void sim_graph_remove(struct sim_graph_node *node);
bool sim_graph_has_dependents(const struct sim_graph_node *node);

/* 0, or 1 where the nodes depend on each other in a circle. */
int sim_exec_create(struct sim_graph *graph, struct sim_exec **exec);
int sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream);
void sim_exec_destroy(struct sim_exec *exec);

void sim_graph_retain(struct sim_graph *graph, struct sim_user_object *object, unsigned n);
void sim_user_object_release(struct sim_user_object *object, unsigned n);

#endif
