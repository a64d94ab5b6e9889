/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_graph_memory.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "collectors/cuda/cuda.h"

/* Most programs have no such nodes, and then no event about their graphs is sent. */
static _Atomic uint32_t are_nodes_there;

/* What the thread's call created. */
static _Thread_local struct {
	int type; /* CUDA_NODE_ALLOC or CUDA_NODE_FREE; 0: nothing */
	uint32_t graph;
} made;

void torsh_cuda_graph_memory_call_begins(void)
{
	made.type = 0;
}

void torsh_cuda_graph_memory_node(const struct cupti_graph *graph)
{
	if ((graph->node_type != CUDA_NODE_ALLOC && graph->node_type != CUDA_NODE_FREE) ||
	    !torsh_cupti.GetGraphId || torsh_cupti.GetGraphId(graph->graph, &made.graph))
		return;
	made.type = graph->node_type;
	atomic_store_explicit(&are_nodes_there, 1, memory_order_relaxed);
}

bool torsh_cuda_graph_memory_got(const struct event_device_alloc *alloc, const void *frame)
{
	struct event event = {
		.id = EVENT_GRAPH_MEMORY,
		.graph_memory =
			{
				.api = alloc->api,
				.graph = made.graph,
				.address = alloc->address,
				.bytes = alloc->bytes,
				.device = alloc->device,
				.context = alloc->context,
			},
	};

	if (made.type != CUDA_NODE_ALLOC)
		return false;
	torsh_producer_send(&event, torsh_config.with_stack ? frame : NULL);
	return true;
}

bool torsh_cuda_graph_memory_freed(uint32_t api, uint64_t address, bool is_recorded)
{
	if (made.type != CUDA_NODE_FREE)
		return false;
	torsh_cuda_send(&(struct event){
		.id = EVENT_GRAPH_MEMORY,
		.graph_memory =
			{
				.api = api,
				.graph = made.graph,
				.is_free = 1,
				.is_told = is_recorded,
				.address = address,
				.device = DEVICE_NOT_KNOWN,
			},
	});
	return true;
}

void torsh_cuda_graph_memory_instantiated(const struct cuda_graph_instantiate *call, uint64_t flags)
{
	struct event event = {.id = EVENT_GRAPH_EXECUTABLE};

	if (!atomic_load_explicit(&are_nodes_there, memory_order_relaxed) ||
	    !torsh_cupti.GetGraphId ||
	    torsh_cupti.GetGraphId(call->graph, &event.graph_executable.graph))
		return;
	event.graph_executable.executable = *call->out;
	event.graph_executable.flags = (uint32_t)flags;
	torsh_cuda_send(&event);
}

void torsh_cuda_graph_memory_launched(uint64_t executable)
{
	if (atomic_load_explicit(&are_nodes_there, memory_order_relaxed))
		torsh_cuda_send(&(struct event){.id = EVENT_GRAPH_LAUNCH,
						.graph_launch = {.executable = executable}});
}
