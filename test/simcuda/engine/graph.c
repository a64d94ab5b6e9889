/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Graphs, and how they are launched: each node becomes an operation that waits for those before it.
 */
#include "test/simcuda/engine/graph.h"

#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/graph_memory.h"
#include "test/simcuda/engine/queue.h"
#include "test/simcuda/engine/result.h"

enum { GRAPH_MAGIC = 0x47726170, EXEC_MAGIC = 0x45786563 };

static _Atomic uint32_t last_id;

static void report(const struct sim_resource_event *event)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (tracer && tracer->resource)
		tracer->resource(event);
}

bool sim_graph_is_live(const struct sim_graph *graph)
{
	return graph && graph->magic == GRAPH_MAGIC;
}

bool sim_exec_is_live(const struct sim_exec *exec)
{
	return exec && exec->magic == EXEC_MAGIC;
}

static struct sim_graph *make_graph(void)
{
	struct sim_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		abort();
	graph->magic = GRAPH_MAGIC;
	graph->id = ++last_id;
	return graph;
}

struct sim_graph *sim_graph_create(void)
{
	struct sim_graph *graph = make_graph();

	report(&(struct sim_resource_event){.what = SIM_GRAPH_CREATED, .graph = graph});
	return graph;
}

static struct sim_graph_node *make_node(struct sim_graph *graph, const struct sim_work *work)
{
	struct sim_graph_node *node = calloc(1, sizeof(*node));

	if (graph->n_nodes == graph->capacity) {
		graph->capacity = graph->capacity ? 2 * graph->capacity : 16;
		graph->nodes = realloc(graph->nodes, graph->capacity * sizeof(*graph->nodes));
	}
	if (!node || !graph->nodes)
		abort();
	node->id = (uint64_t)graph->id << 32 | (graph->n_nodes + 1);
	node->graph = graph;
	node->work = *work;
	graph->nodes[graph->n_nodes++] = node;
	return node;
}

void sim_graph_depend(struct sim_graph_node *node, struct sim_graph_node *const *after,
		      size_t n_after)
{
	if (!n_after)
		return;
	node->after = realloc(node->after, (node->n_after + n_after) * sizeof(*node->after));
	memcpy(node->after + node->n_after, after, n_after * sizeof(*after));
	node->n_after += n_after;
}

struct sim_graph_node *sim_graph_add(struct sim_graph *graph, const struct sim_work *work,
				     struct sim_graph_node *const *after, size_t n_after)
{
	for (size_t i = 0; i < n_after; i++)
		if (!after[i] || after[i]->graph != graph)
			return NULL;
	struct sim_graph_node *node = make_node(graph, work);
	sim_graph_depend(node, after, n_after);
	graph->has_memory =
		graph->has_memory || work->kind == SIM_ALLOC || work->kind == SIM_RELEASE;
	return node;
}

bool sim_graph_has_dependents(const struct sim_graph_node *node)
{
	for (size_t i = 0; i < node->graph->n_nodes; i++) {
		const struct sim_graph_node *other = node->graph->nodes[i];

		for (size_t k = 0; k < other->n_after; k++)
			if (other->after[k] == node)
				return true;
	}
	return false;
}

void sim_graph_remove(struct sim_graph_node *node)
{
	struct sim_graph *graph = node->graph;
	size_t kept = 0;

	report(&(struct sim_resource_event){
		.what = SIM_NODE_DESTROYED, .graph = graph, .node = node});
	for (size_t i = 0; i < graph->n_nodes; i++) {
		struct sim_graph_node *other = graph->nodes[i];
		size_t n = 0;

		for (size_t k = 0; k < other->n_after; k++)
			if (other->after[k] != node)
				other->after[n++] = other->after[k];
		other->n_after = n;
		if (other != node)
			graph->nodes[kept++] = other;
	}
	graph->n_nodes = kept;
	node->is_removed = true;
}

/* Append clones in the order of what they depend on; false for a circle. */
static bool clone_sorted(struct sim_graph *to, struct sim_graph *from)
{
	size_t n_done = 0, n_before;

	do {
		n_before = n_done;
		for (size_t i = 0; i < from->n_nodes; i++) {
			struct sim_graph_node *node = from->nodes[i];
			bool is_next = !node->has_mark;

			for (size_t k = 0; k < node->n_after; k++)
				is_next = is_next && node->after[k]->has_mark;
			if (!is_next)
				continue;
			struct sim_graph_node *clone = make_node(to, &node->work);
			if (node->work.kind == SIM_COPY)
				clone->work.copy.staged = NULL;
			clone->original = node;
			node->has_mark = true;
			n_done++;
		}
	} while (n_done > n_before);
	for (size_t i = 0; i < from->n_nodes; i++)
		from->nodes[i]->has_mark = false;
	return n_done == from->n_nodes;
}

static struct sim_graph_node *clone_of(const struct sim_graph *graph,
				       const struct sim_graph_node *original)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->original == original)
			return graph->nodes[i];
	return NULL;
}

static struct sim_graph *clone_graph(struct sim_graph *graph, bool is_instantiated);

static void clone_bodies(struct sim_condition_work *condition, bool is_instantiated)
{
	struct sim_graph **bodies = calloc(condition->n_bodies, sizeof(*bodies));

	if (!bodies)
		abort();
	for (unsigned i = 0; i < condition->n_bodies; i++)
		bodies[i] = clone_graph(condition->bodies[i], is_instantiated);
	condition->bodies = bodies;
}

/* What a node has of its own, its clone has too. */
static void clone_inside(struct sim_graph_node *clone, bool is_instantiated)
{
	if (clone->work.kind == SIM_CHILD)
		clone->work.child = clone_graph(clone->work.child, is_instantiated);
	else if (clone->work.kind == SIM_CONDITIONAL)
		clone_bodies(&clone->work.condition, is_instantiated);
	else if (clone->work.kind == SIM_ALLOC)
		sim_graph_memory_hold(clone->work.address, 1);
}

static void link_clones(struct sim_graph *graph, bool is_instantiated)
{
	for (size_t i = 0; i < graph->n_nodes; i++) {
		struct sim_graph_node *clone = graph->nodes[i], *original = clone->original;

		for (size_t k = 0; k < original->n_after; k++) {
			struct sim_graph_node *before = clone_of(graph, original->after[k]);

			sim_graph_depend(clone, &before, 1);
		}
		clone_inside(clone, is_instantiated);
	}
}

static struct sim_graph *clone_graph(struct sim_graph *graph, bool is_instantiated)
{
	struct sim_graph *clone = make_graph();

	if (!clone_sorted(clone, graph)) {
		clone->magic = 0;
		return NULL;
	}
	clone->has_memory = graph->has_memory;
	link_clones(clone, is_instantiated);
	report(&(struct sim_resource_event){
		.what = SIM_GRAPH_CLONED, .graph = clone, .original_graph = graph});
	/*
	 * NVIDIA's own sample of tracing graphs skips the nodes that an instantiation reports as
	 * created.
	 */
	for (size_t i = 0; i < clone->n_nodes && is_instantiated; i++)
		report(&(struct sim_resource_event){
			.what = SIM_NODE_CREATED, .graph = clone, .node = clone->nodes[i]});
	for (size_t i = 0; i < clone->n_nodes; i++)
		report(&(struct sim_resource_event){.what = SIM_NODE_CLONED,
						    .graph = clone,
						    .original_graph = graph,
						    .node = clone->nodes[i],
						    .original_node = clone->nodes[i]->original});
	for (size_t i = 0; i < graph->n_objects; i++)
		sim_graph_retain(clone, graph->objects[i], 1);
	return clone;
}

struct sim_graph *sim_graph_clone(struct sim_graph *graph)
{
	return clone_graph(graph, false);
}

void sim_graph_destroy(struct sim_graph *graph)
{
	report(&(struct sim_resource_event){.what = SIM_GRAPH_DESTROYED, .graph = graph});
	graph->magic = 0;
	for (size_t i = 0; i < graph->n_objects; i++)
		sim_user_object_release(graph->objects[i], 1);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		if (graph->nodes[i]->work.kind == SIM_COPY)
			free(graph->nodes[i]->work.copy.staged);
		else if (graph->nodes[i]->work.kind == SIM_ALLOC)
			sim_graph_memory_hold(graph->nodes[i]->work.address, -1);
		free(graph->nodes[i]->after);
	}
	/* The handles stay readable, to distinguish a stale one from a live one. */
	free(graph->objects);
	graph->n_objects = graph->n_nodes = 0;
}

int sim_exec_create(struct sim_graph *graph, struct sim_exec **out)
{
	struct sim_graph *clone = clone_graph(graph, true);
	struct sim_exec *exec = clone ? calloc(1, sizeof(*exec)) : NULL;

	if (!exec)
		return SIM_INVALID_VALUE;
	exec->magic = EXEC_MAGIC;
	exec->id = clone->id;
	exec->graph = clone;
	exec->source = graph;
	graph->n_execs++;
	report(&(struct sim_resource_event){
		.what = SIM_EXEC_CREATED, .graph = clone, .original_graph = graph, .exec = exec});
	*out = exec;
	return SIM_SUCCESS;
}

void sim_exec_destroy(struct sim_exec *exec)
{
	report(&(struct sim_resource_event){
		.what = SIM_EXEC_DESTROYED, .graph = exec->graph, .exec = exec});
	exec->magic = 0;
	exec->source->n_execs--;
	sim_lock();
	sim_op_unref(exec->last);
	exec->last = NULL;
	sim_unlock();
	sim_graph_destroy(exec->graph);
}

/* One launch of an executable graph. */
struct launch {
	struct sim_stream *stream;
	uint32_t graph_id;
	struct sim_op *end; /* of all of it */
};

static struct sim_op *make_op(const struct launch *launch, const struct sim_work *work)
{
	struct sim_op *op = sim_op_create(launch->stream->context, work);

	op->stream_id = launch->stream->id;
	op->graph_id = launch->graph_id;
	return op;
}

static struct sim_op *make_mark(const struct launch *launch)
{
	return make_op(launch, &(struct sim_work){.kind = SIM_EMPTY});
}

static void launch_nodes(const struct launch *launch, struct sim_graph *graph, struct sim_op *begin,
			 struct sim_op *end);

static bool is_of_graphs(const struct sim_work *work)
{
	return work->kind == SIM_CHILD || work->kind == SIM_CONDITIONAL;
}

/* What a node of graphs runs in that round, from 0; NULL: that was all. */
static struct sim_graph *body_of(const struct sim_work *work, unsigned round)
{
	const struct sim_condition_work *condition = &work->condition;

	if (work->kind == SIM_CONDITIONAL && condition->kind == SIM_WHILE)
		return condition->value && (int)round < sim_config()->loop_rounds
			       ? condition->bodies[0]
			       : NULL;
	if (round)
		return NULL;
	if (work->kind == SIM_CHILD)
		return work->child;
	unsigned i = condition->kind == SIM_IF ? !condition->value : condition->value;
	return i < condition->n_bodies ? condition->bodies[i] : NULL;
}

/*
 * A mark, which is begin, the nodes, and a mark, for each round; returns a reference to the last
 * one. Takes begin's.
 */
static struct sim_op *launch_bodies(const struct launch *launch, const struct sim_work *work,
				    struct sim_op *begin)
{
	struct sim_graph *body;

	for (unsigned round = 0; (body = body_of(work, round)); round++) {
		struct sim_op *end = make_mark(launch);

		launch_nodes(launch, body, begin, end);
		sim_op_submit(end, sim_now());
		sim_op_unref(begin);
		begin = end;
	}
	return begin;
}

static void wait_for_nodes(struct sim_op *op, const struct sim_graph_node *node,
			   struct sim_op *begin)
{
	sim_op_after(op, begin);
	for (size_t i = 0; i < node->n_after; i++)
		sim_op_after(op, node->after[i]->op);
}

/* Returns a reference to the operation that ends the node. */
static struct sim_op *launch_node(const struct launch *launch, struct sim_graph_node *node,
				  struct sim_op *begin)
{
	struct sim_op *op =
		is_of_graphs(&node->work) ? make_mark(launch) : make_op(launch, &node->work);

	op->graph_node = node->id;
	op->graph_end = op->unit == SIM_NO_UNIT ? NULL : launch->end;
	wait_for_nodes(op, node, begin);
	if (node->work.kind == SIM_RECORD)
		sim_event_set_op(node->work.event, op);
	if (node->work.kind == SIM_WAIT)
		sim_op_after(op, node->work.event->op);
	sim_op_submit(op, sim_now() + sim_config()->launch_ns);
	return is_of_graphs(&node->work) ? launch_bodies(launch, &node->work, op) : op;
}

/* All nodes start after begin; end, which is not submitted yet, comes after them. */
static void launch_nodes(const struct launch *launch, struct sim_graph *graph, struct sim_op *begin,
			 struct sim_op *end)
{
	sim_op_after(end, begin);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		graph->nodes[i]->op = launch_node(launch, graph->nodes[i], begin);
		sim_op_after(end, graph->nodes[i]->op);
	}
	for (size_t i = 0; i < graph->n_nodes; i++) {
		sim_op_unref(graph->nodes[i]->op);
		graph->nodes[i]->op = NULL;
	}
}

static void launch_locked(struct sim_exec *exec, struct sim_stream *stream)
{
	struct launch launch = {.stream = stream, .graph_id = exec->id};
	struct sim_op *begin = sim_stream_op(stream, &(struct sim_work){.kind = SIM_EMPTY});

	sim_run();
	sim_op_after(begin, exec->last);
	sim_stream_append(stream, begin, sim_now());
	launch.end = sim_stream_op(stream, &(struct sim_work){.kind = SIM_EMPTY});
	launch.end->graph_id = exec->id;
	launch.end->ends_graph = true;
	launch_nodes(&launch, exec->graph, begin, launch.end);
	sim_stream_append(stream, launch.end, sim_now());
	sim_op_unref(exec->last);
	exec->last = launch.end;
	sim_op_unref(begin);
}

int sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream)
{
	struct sim_work child = {.kind = SIM_CHILD, .child = exec->graph};
	int result = stream->context->error;

	sim_lock();
	if (stream->end.capture) {
		result = exec->graph->has_memory ? sim_capture_forbids(stream)
						 : sim_capture_add(stream, &child);
	} else {
		result = result ? result : sim_graph_memory_launch(exec, stream);
		if (!result)
			launch_locked(exec, stream);
	}
	sim_unlock();
	return result;
}

void sim_graph_retain(struct sim_graph *graph, struct sim_user_object *object, unsigned n)
{
	graph->objects = realloc(graph->objects, (graph->n_objects + n) * sizeof(*graph->objects));
	object->n_refs += n;
	while (n--)
		graph->objects[graph->n_objects++] = object;
}

void sim_user_object_release(struct sim_user_object *object, unsigned n)
{
	object->n_refs -= n < object->n_refs ? n : object->n_refs;
	if (object->n_refs)
		return;
	object->destroy(object->data);
	free(object);
}
