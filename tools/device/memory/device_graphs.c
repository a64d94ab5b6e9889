/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_graphs.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

/* The allocation or free of a node. */
struct graph_step {
	struct event_graph_memory memory;
	struct device_origin origin; /* where the node was created */
};

void torsh_device_graphs_create(struct device_graphs *graphs)
{
	*graphs = (struct device_graphs){0};
	torsh_key_index_create(&graphs->graphs_by_number);
	torsh_key_index_create(&graphs->executables_by_handle);
}

void torsh_device_graphs_destroy(struct device_graphs *graphs)
{
	for (size_t i = 0; i < graphs->n_graphs; i++)
		free(graphs->graphs[i].steps);
	torsh_key_index_destroy(&graphs->graphs_by_number);
	torsh_key_index_destroy(&graphs->executables_by_handle);
	free(graphs->graphs);
	free(graphs->executables);
	*graphs = (struct device_graphs){0};
}

/* Numbers of graphs start at 0, which the index reserves. */
static uint64_t key_of(uint32_t number)
{
	return UINT64_C(1) + number;
}

static struct graph_with_memory *find_graph(const struct device_graphs *graphs, uint32_t number)
{
	const struct key_slot *slot =
		torsh_key_index_find(&graphs->graphs_by_number, key_of(number));

	return slot->key ? &graphs->graphs[slot->number] : NULL;
}

static struct executable_graph *find_executable(const struct device_graphs *graphs, uint64_t handle)
{
	const struct key_slot *slot =
		handle ? torsh_key_index_find(&graphs->executables_by_handle, handle) : NULL;

	return slot && slot->key ? &graphs->executables[slot->number] : NULL;
}

static struct graph_with_memory *add_graph(struct device_graphs *graphs, uint32_t number)
{
	struct key_slot *slot = torsh_key_index_find(&graphs->graphs_by_number, key_of(number));

	graphs->graphs = torsh_array_reserve(graphs->graphs, graphs->n_graphs, &graphs->graphs_room,
					     sizeof(*graphs->graphs));
	graphs->graphs[graphs->n_graphs] = (struct graph_with_memory){0};
	torsh_key_index_fill(&graphs->graphs_by_number, slot, key_of(number),
			     (uint32_t)graphs->n_graphs);
	return &graphs->graphs[graphs->n_graphs++];
}

static struct executable_graph *add_executable(struct device_graphs *graphs, uint64_t handle)
{
	struct key_slot *slot = torsh_key_index_find(&graphs->executables_by_handle, handle);

	graphs->executables =
		torsh_array_reserve(graphs->executables, graphs->n_executables,
				    &graphs->executables_room, sizeof(*graphs->executables));
	graphs->executables[graphs->n_executables] = (struct executable_graph){0};
	torsh_key_index_fill(&graphs->executables_by_handle, slot, handle,
			     (uint32_t)graphs->n_executables);
	return &graphs->executables[graphs->n_executables++];
}

static void take_memory(struct device_graphs *graphs, const struct event_graph_memory *memory,
			const struct device_origin *origin)
{
	struct graph_with_memory *graph = find_graph(graphs, memory->graph);

	if (!graph)
		graph = add_graph(graphs, memory->graph);
	graph->steps =
		torsh_array_reserve(graph->steps, graph->n, &graph->n_room, sizeof(*graph->steps));
	graph->steps[graph->n++] = (struct graph_step){.memory = *memory, .origin = *origin};
}

/* A graph without memory nodes is ignored, unless it reuses the handle of one that had some. */
static void take_executable(struct device_graphs *graphs,
			    const struct event_graph_executable *event)
{
	const struct graph_with_memory *graph = find_graph(graphs, event->graph);
	struct executable_graph *executable = find_executable(graphs, event->executable);

	if (!event->executable || (!graph && !executable))
		return;
	if (!executable)
		executable = add_executable(graphs, event->executable);
	executable->frees_at_launch = event->flags & GRAPH_FREES_AT_LAUNCH;
	executable->graph = graph ? (size_t)(graph - graphs->graphs) : 0;
	executable->n = graph ? graph->n : 0;
}

/* ---- launches -------------------------------------------------------------------------------- */

static struct event make_alloc(const struct event_graph_memory *memory)
{
	return (struct event){
		.id = EVENT_DEVICE_ALLOC,
		.device_alloc =
			{
				.api = memory->api,
				.kind = BLOCK_DEVICE,
				.address = memory->address,
				.bytes = memory->bytes,
				.device = memory->device,
				.context = memory->context,
			},
	};
}

static struct event make_free(const struct event_graph_memory *memory)
{
	return (struct event){
		.id = EVENT_DEVICE_FREE,
		.device_free = {.api = memory->api,
				.kind = BLOCK_DEVICE,
				.address = memory->address},
	};
}

struct launch {
	const struct graph_step *steps;
	size_t n;
	const struct device_blocks *blocks;
	const struct device_origin *origin;
	device_graphs_visit *visit;
	void *context;
};

/* Frees what the previous launch allocated and nothing freed. */
static void free_what_is_left(const struct launch *launch)
{
	for (size_t i = 0; i < launch->n; i++) {
		const struct event_graph_memory *memory = &launch->steps[i].memory;
		const struct device_block *block =
			torsh_device_blocks_at(launch->blocks, memory->address);
		struct event event = make_free(memory);

		if (!memory->is_free && block && block->address == memory->address)
			launch->visit(launch->context, &event, launch->origin);
	}
}

static void do_steps(const struct launch *launch)
{
	for (size_t i = 0; i < launch->n; i++) {
		const struct graph_step *step = &launch->steps[i];
		struct event event =
			step->memory.is_free ? make_free(&step->memory) : make_alloc(&step->memory);
		struct device_origin origin = step->origin;

		origin.at_ns = launch->origin->at_ns;
		origin.thread = launch->origin->thread;
		origin.step = launch->origin->step;
		launch->visit(launch->context, &event, &origin);
	}
}

bool torsh_device_graphs_take(struct device_graphs *graphs, const struct device_blocks *blocks,
			      const struct event *event, const struct device_origin *origin,
			      device_graphs_visit *visit, void *context)
{
	struct launch launch = {
		.blocks = blocks, .origin = origin, .visit = visit, .context = context};
	const struct executable_graph *executable;

	switch (event->id) {
	case EVENT_GRAPH_MEMORY:
		take_memory(graphs, &event->graph_memory, origin);
		return true;
	case EVENT_GRAPH_EXECUTABLE:
		take_executable(graphs, &event->graph_executable);
		return true;
	case EVENT_GRAPH_LAUNCH:
		executable = find_executable(graphs, event->graph_launch.executable);
		if (!executable || !executable->n)
			return true;
		launch.steps = graphs->graphs[executable->graph].steps;
		launch.n = executable->n;
		if (executable->frees_at_launch)
			free_what_is_left(&launch);
		do_steps(&launch);
		return true;
	default:
		return false;
	}
}
