/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/device_graphs.h. */
#include "tools/profile/device_graphs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

/* What a node does. */
struct graph_step {
	struct event_graph_memory memory;
	struct device_origin origin; /* of the node */
};

void torsh_device_graphs_create(struct device_graphs *graphs)
{
	*graphs = (struct device_graphs){0};
}

void torsh_device_graphs_destroy(struct device_graphs *graphs)
{
	for (size_t i = 0; i < graphs->n_graphs; i++)
		free(graphs->graphs[i].steps);
	for (size_t i = 0; i < graphs->n_executables; i++)
		free(graphs->executables[i].steps);
	free(graphs->graphs);
	free(graphs->executables);
	*graphs = (struct device_graphs){0};
}

static struct graph_with_memory *find_graph(struct device_graphs *graphs, uint32_t number)
{
	for (size_t i = graphs->n_graphs; i-- > 0;) {
		if (graphs->graphs[i].graph == number)
			return &graphs->graphs[i];
	}
	return NULL;
}

static struct executable_graph *find_executable(struct device_graphs *graphs, uint64_t handle)
{
	for (size_t i = graphs->n_executables; i-- > 0;) {
		if (graphs->executables[i].handle == handle)
			return &graphs->executables[i];
	}
	return NULL;
}

static void take_memory(struct device_graphs *graphs, const struct event_graph_memory *memory,
			const struct device_origin *origin)
{
	struct graph_with_memory *graph = find_graph(graphs, memory->graph);

	if (!graph) {
		graphs->graphs = torsh_need_room(graphs->graphs, graphs->n_graphs, &graphs->graphs_room,
						 sizeof(*graphs->graphs));
		graph = &graphs->graphs[graphs->n_graphs++];
		*graph = (struct graph_with_memory){.graph = memory->graph};
	}
	graph->steps = torsh_need_room(graph->steps, graph->n, &graph->n_room, sizeof(*graph->steps));
	graph->steps[graph->n++] = (struct graph_step){.memory = *memory, .origin = *origin};
}

static void take_executable(struct device_graphs *graphs, const struct event_graph_executable *event)
{
	const struct graph_with_memory *graph = find_graph(graphs, event->graph);
	struct executable_graph *executable = find_executable(graphs, event->executable);

	if (!executable) {
		if (!graph)
			return;
		graphs->executables = torsh_need_room(graphs->executables, graphs->n_executables,
						      &graphs->executables_room, sizeof(*graphs->executables));
		executable = &graphs->executables[graphs->n_executables++];
		*executable = (struct executable_graph){.handle = event->executable};
	}
	free(executable->steps);
	executable->frees_at_launch = event->flags & GRAPH_FREES_AT_LAUNCH;
	executable->n = graph ? graph->n : 0;
	executable->steps = torsh_need_items(NULL, 0, executable->n + 1, sizeof(*executable->steps));
	if (executable->n)
		memcpy(executable->steps, graph->steps, executable->n * sizeof(*executable->steps));
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

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
		.device_free = {.api = memory->api, .kind = BLOCK_DEVICE, .address = memory->address},
	};
}

/* What the launch before got, and nobody freed. */
static void free_what_is_left(const struct executable_graph *executable, const struct device_blocks *blocks,
			      const struct device_origin *launch, device_graphs_visit *visit, void *context)
{
	for (size_t i = 0; i < executable->n; i++) {
		const struct event_graph_memory *memory = &executable->steps[i].memory;
		const struct device_block *block = torsh_device_blocks_at(blocks, memory->address);
		struct event event = make_free(memory);

		if (!memory->is_free && block && block->address == memory->address)
			visit(context, &event, launch);
	}
}

static void take_launch(const struct executable_graph *executable, const struct device_blocks *blocks,
			const struct device_origin *launch, device_graphs_visit *visit, void *context)
{
	if (executable->frees_at_launch)
		free_what_is_left(executable, blocks, launch, visit, context);
	for (size_t i = 0; i < executable->n; i++) {
		const struct graph_step *step = &executable->steps[i];
		struct event event = step->memory.is_free ? make_free(&step->memory) : make_alloc(&step->memory);
		struct device_origin origin = step->origin;

		origin.at_ns = launch->at_ns;
		origin.thread = launch->thread;
		origin.step = launch->step;
		visit(context, &event, &origin);
	}
}

bool torsh_device_graphs_take(struct device_graphs *graphs, const struct device_blocks *blocks,
			      const struct event *event, const struct device_origin *origin,
			      device_graphs_visit *visit, void *context)
{
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
		if (executable)
			take_launch(executable, blocks, origin, visit, context);
		return true;
	default:
		return false;
	}
}
