/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The program's device memory, from the parameters of its calls, read before and after them. An
 * allocation is sent when the call has returned, with its stack; a free is sent before the call.
 * cuda_memory_callbacks.c records the calls with CUPTI, cuda_memory_driver.c without.
 */
#include "collectors/cuda/memory/cuda_memory_events.h"

#include <stdbool.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/memory/cuda_graph_memory.h"
#include "collectors/cuda/memory/cuda_live.h"
#include "collectors/cuda/memory/cuda_memory_info.h"
#include "collectors/cuda/memory/cuda_modules.h"
#include "collectors/cuda/memory/cuda_pools.h"
#include "collectors/cuda/memory/cuda_request.h"
#include "shim/cuda/cuda_memory.h"

static const struct memory_call {
	const char *name;
	uint8_t action, kind, flags;
} calls[] = {
#define MEMORY(name, action, kind, flags) {#name, CUDA_##action, BLOCK_##kind, flags},
#include "shim/cuda/cuda_memory.def"
#undef MEMORY
};

#define N_MEMORY_CALLS (sizeof(calls) / sizeof(*calls))

_Static_assert(N_MEMORY_CALLS < 256, "numbers of calls are kept in bytes");

static uint32_t labels[N_MEMORY_CALLS];

/*
 * ---- events ------------------------------------------------------------------------------------
 */

/* It allocates nothing itself, even if CUPTI does not report the graph's node. */
static bool is_of_node(uint8_t action)
{
	return action == CUDA_GRAPH_ALLOC || action == CUDA_GRAPH_NODE ||
	       action == CUDA_GRAPH_EDGED_NODE;
}

static bool is_of_pool(uint8_t action)
{
	return action == CUDA_ALLOC_ASYNC || action == CUDA_ALLOC_POOL || is_of_node(action);
}

static struct event_device_alloc requested_by(const struct cuda_memory_call *call,
					      const struct memory_call *what)
{
	return (struct event_device_alloc){
		.api = labels[what - calls],
		.kind = what->kind,
		.context = call->context,
		.device = call->device,
		.flags = what->flags,
	};
}

static void send_alloc(const struct cuda_memory_call *call, const struct memory_call *what,
		       const void *frame)
{
	struct event event = {.id = EVENT_DEVICE_ALLOC, .device_alloc = requested_by(call, what)};
	struct event_device_alloc *alloc = &event.device_alloc;

	torsh_cuda_request_after(alloc, call->parameters, what->action);
	torsh_cuda_memory_info_see(alloc->device, is_of_pool(what->action));
	if (torsh_cuda_graph_memory_got(alloc, frame) || is_of_node(what->action))
		return;
	torsh_producer_send(&event, torsh_config.with_stack ? frame : NULL);
	/* After the allocation, which the driver's count includes. */
	if (torsh_cuda_live_got(alloc))
		torsh_cuda_memory_info_is_high(alloc->device);
}

static bool is_free(uint8_t action)
{
	return action == CUDA_FREE || action == CUDA_FREE_ASYNC || action == CUDA_UNMAP;
}

static void send_free(const struct cuda_memory_call *call, const struct memory_call *what)
{
	const struct cuda_extent *extent = call->parameters;
	const struct cuda_free *freed = call->parameters;
	struct event event = {
		.id = EVENT_DEVICE_FREE,
		.device_free =
			{
				.api = labels[what - calls],
				.kind = what->kind,
				.address = extent->address,
				.bytes = what->action == CUDA_UNMAP ? extent->bytes : 0,
				.stream = what->action == CUDA_FREE_ASYNC ? freed->stream : 0,
				.context = call->context,
			},
	};

	if (!event.device_free.address)
		return;
	torsh_cuda_send(&event);
	if (what->action != CUDA_UNMAP)
		torsh_cuda_live_frees(what->kind, extent->address);
}

static void send_failure(const struct cuda_memory_call *call, const struct memory_call *what,
			 int result)
{
	struct event event = {
		.id = EVENT_DEVICE_FREE_FAILED,
		.device_free_failed =
			{.kind = what->kind,
			 .address = ((const struct cuda_extent *)call->parameters)->address,
			 .result = result},
	};

	if (!event.device_free_failed.address)
		return;
	torsh_cuda_send(&event);
	torsh_cuda_live_kept(what->kind, event.device_free_failed.address);
}

static const struct cuda_node *node_of(const struct cuda_memory_call *call, uint8_t action)
{
	if (action == CUDA_GRAPH_NODE)
		return ((const struct cuda_graph_node *)call->parameters)->node;
	return ((const struct cuda_graph_edged_node *)call->parameters)->node;
}

/* A node of any type. */
static void send_node(const struct cuda_memory_call *call, const struct memory_call *what,
		      const void *frame)
{
	const struct cuda_node *node = node_of(call, what->action);

	if (node->type == CUDA_NODE_ALLOC)
		send_alloc(call, what, frame);
	else if (node->type == CUDA_NODE_FREE)
		torsh_cuda_graph_memory_freed(labels[what - calls], node->freed, 0);
}

/*
 * The driver is queried immediately for a device that is out of memory: the program may free some
 * before it tries again.
 */
static void send_refusal(const struct cuda_memory_call *call, const struct memory_call *what,
			 const void *frame)
{
	struct event_device_alloc wanted = requested_by(call, what);
	struct event_device_room info = {0};
	int requested;

	torsh_cuda_request_before(&wanted, call->parameters, what->action);
	requested = torsh_cuda_memory_info_query(wanted.device, is_of_pool(what->action), &info);
	torsh_producer_send(
		&(struct event){
			.id = EVENT_DEVICE_REFUSED,
			.device_refused =
				{
					.api = wanted.api,
					.kind = wanted.kind ? wanted.kind : BLOCK_DEVICE,
					.bytes = wanted.bytes,
					.device = wanted.device,
					.context = wanted.context,
					.pool = wanted.pool,
					.flags = wanted.flags,
					.asked = requested,
					.free_bytes = info.free_bytes,
					.total_bytes = info.total_bytes,
					.has_pools = info.has_pools,
					.pools_reserved = info.pools_reserved,
					.pools_used = info.pools_used,
					.has_graphs = info.has_graphs,
					.graphs_reserved = info.graphs_reserved,
					.graphs_used = info.graphs_used,
				},
		},
		torsh_config.with_stack ? frame : NULL);
}

/* Whether the action is about memory in another way, as graph nodes of other types are. */
static bool gets_memory(const struct cuda_memory_call *call, uint8_t action)
{
	switch (action) {
	case CUDA_GRAPH_NODE:
	case CUDA_GRAPH_EDGED_NODE:
		return node_of(call, action)->type == CUDA_NODE_ALLOC;
	case CUDA_GRAPH_FREE:
	case CUDA_POOL_OF_DEVICE:
	case CUDA_POOL_OF_LOCATION:
	case CUDA_MEM_GET_INFO:
	case CUDA_CODE_LOAD:
	case CUDA_CODE_UNLOAD:
		return false;
	default:
		return true;
	}
}

static void add_pool(const void *parameters, uint8_t action)
{
	const struct cuda_pool *made = parameters;
	const struct cuda_pool_of_device *of_device = parameters;
	const struct cuda_pool_of_location *of_location = parameters;

	if (action == CUDA_POOL_CREATE && made->properties)
		torsh_cuda_pools_add(*made->out, made->properties);
	else if (action == CUDA_POOL_OF_DEVICE)
		torsh_cuda_pools_add(*of_device->out,
				     &(struct cuda_properties){.location = {CUDA_LOCATION_DEVICE,
									    of_device->device}});
	else if (action == CUDA_POOL_OF_LOCATION && of_location->location)
		torsh_cuda_pools_add(*of_location->out,
				     &(struct cuda_properties){.type = of_location->type,
							       .location = *of_location->location});
}

static void at_success(const struct cuda_memory_call *call, const struct memory_call *what,
		       const void *frame)
{
	const struct cuda_free *freed = call->parameters;
	const struct cuda_extent *extent = call->parameters;
	const struct cuda_graph_instantiate *instantiated = call->parameters;

	switch (what->action) {
	case CUDA_FREE_ASYNC:
		if (torsh_cuda_graph_memory_freed(labels[what - calls], freed->address, 1))
			torsh_cuda_live_kept(what->kind, freed->address);
		break;
	case CUDA_FREE:
		break;
	case CUDA_UNMAP:
		torsh_cuda_live_unmapped(extent->address, extent->bytes);
		break;
	case CUDA_GRAPH_FREE:
		torsh_cuda_graph_memory_freed(
			labels[what - calls],
			((const struct cuda_graph_free *)call->parameters)->address, 0);
		break;
	case CUDA_GRAPH_NODE:
	case CUDA_GRAPH_EDGED_NODE:
		send_node(call, what, frame);
		break;
	case CUDA_GRAPH_INSTANTIATE:
		torsh_cuda_graph_memory_instantiated(instantiated, instantiated->flags);
		break;
	case CUDA_GRAPH_INSTANTIATE_WITH:
		torsh_cuda_graph_memory_instantiated(instantiated, *instantiated->with);
		break;
	case CUDA_GRAPH_LAUNCH:
		torsh_cuda_graph_memory_launched(
			((const struct cuda_graph_launch *)call->parameters)->executable);
		break;
	case CUDA_POOL_CREATE:
	case CUDA_POOL_OF_DEVICE:
	case CUDA_POOL_OF_LOCATION:
		add_pool(call->parameters, what->action);
		break;
	case CUDA_MEM_GET_INFO:
		torsh_cuda_memory_info_returned(call->parameters, call->device);
		break;
	case CUDA_CODE_UNLOAD:
		torsh_cuda_modules_unloaded(labels[what - calls], call, freed->address);
		break;
	default:
		send_alloc(call, what, frame);
	}
}

/* ---- a call ---------------------------------------------------------------------------------- */

bool torsh_cuda_memory_is_of_code(uint32_t number)
{
	return calls[number - 1].action == CUDA_CODE_LOAD ||
	       calls[number - 1].action == CUDA_CODE_UNLOAD;
}

void torsh_cuda_memory_begins(uint32_t number, const struct cuda_memory_call *call)
{
	const struct memory_call *what = &calls[number - 1];

	if (what->action == CUDA_CODE_LOAD) {
		torsh_cuda_modules_begins(call->device);
		return;
	}
	torsh_cuda_modules_see_change();
	torsh_cuda_graph_memory_call_begins();
	if (is_free(what->action))
		send_free(call, what);
}

void torsh_cuda_memory_ends(uint32_t number, const struct cuda_memory_call *call, int result,
			    const void *frame)
{
	const struct memory_call *what = &calls[number - 1];

	if (what->action == CUDA_CODE_LOAD) {
		torsh_cuda_modules_ends(labels[what - calls], call, result, frame);
		return;
	}
	torsh_cuda_modules_see_change();
	if (!result)
		at_success(call, what, frame);
	else if (is_free(what->action))
		send_failure(call, what, result);
	else if (result == CUDA_OUT_OF_MEMORY && gets_memory(call, what->action))
		send_refusal(call, what, frame);
}

void torsh_cuda_memory_context_ends(uint32_t context)
{
	struct event event = {.id = EVENT_DEVICE_FREE,
			      .device_free = {.kind = BLOCK_CONTEXT, .context = context}};

	torsh_cuda_send(&event);
	torsh_cuda_live_context_ended(context);
}

/* "cudaMallocAsync_ptsz_v11020" becomes cudaMallocAsync, "cuMemAlloc_v2" stays. */
static size_t length_of(const char *name, size_t length)
{
	static const char *const endings[] = {"_ptsz", "_ptds"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t n = strlen(endings[i]);

		if (length > n && !memcmp(name + length - n, endings[i], n))
			return length - n;
	}
	return length;
}

uint32_t torsh_cuda_memory_find(const char *name, size_t length)
{
	size_t n = length_of(name, length);

	if (!torsh_config.profile_memory)
		return 0;
	for (size_t i = 0; i < N_MEMORY_CALLS; i++) {
		if (strcmp(calls[i].name, name) &&
		    (strlen(calls[i].name) != n || memcmp(calls[i].name, name, n)))
			continue;
		if (!labels[i])
			labels[i] = torsh_label(name, n);
		return (uint32_t)i + 1;
	}
	return 0;
}
