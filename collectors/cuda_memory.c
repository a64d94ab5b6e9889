/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory that a program gets from CUDA, by the calls themselves: their parameters are looked at before and after. What
 * is got is told when the call has returned, with its stack; what is given back is told before. Who sees the calls is
 * cuda_memory_callbacks.c with CUPTI, cuda_memory_driver.c without.
 */
#include "collectors/cuda_memory.h"

#include <string.h>

#include "agent/config.h"
#include "agent/label.h"
#include "collectors/cuda.h"
#include "collectors/cuda_array.h"
#include "collectors/cuda_graph_memory.h"
#include "collectors/cuda_room.h"
#include "shim/cuda_memory.h"

#define N_POOLS 256u

static const struct memory_call {
	const char *name;
	uint8_t action, kind, flags;
} calls[] = {
#define MEMORY(name, action, kind, flags) {#name, CUDA_##action, BLOCK_##kind, flags},
#include "shim/cuda_memory.def"
#undef MEMORY
};

#define N_MEMORY_CALLS (sizeof(calls) / sizeof(*calls))

_Static_assert(N_MEMORY_CALLS < 256, "numbers of calls are kept in bytes");

static uint32_t labels[N_MEMORY_CALLS];

/* ---- pools, which may be another device's than the stream's -------------------------------------------------------- */

static struct {
	struct cuda_lock lock; /* guards the rest */
	uint32_t n;
	struct {
		uint64_t pool;
		uint32_t device;
	} items[N_POOLS];
} pools;

static void learn_pool(uint64_t pool, uint32_t device)
{
	uint32_t i = 0;

	torsh_cuda_lock(&pools.lock);
	while (i < pools.n && pools.items[i].pool != pool)
		i++;
	if (i < N_POOLS) {
		pools.items[i].pool = pool;
		pools.items[i].device = device;
		if (i == pools.n)
			pools.n++;
	}
	torsh_cuda_unlock(&pools.lock);
}

static uint32_t device_of_pool(uint64_t pool, uint32_t otherwise)
{
	uint32_t device = otherwise;

	torsh_cuda_lock(&pools.lock);
	for (uint32_t i = 0; i < pools.n; i++) {
		if (pools.items[i].pool == pool)
			device = pools.items[i].device;
	}
	torsh_cuda_unlock(&pools.lock);
	return device;
}

/* ---- what a call got ----------------------------------------------------------------------------------------------- */

static void see_pitch(struct event_device_alloc *alloc, const struct cuda_alloc_pitch *p)
{
	alloc->address = *p->out;
	alloc->bytes = *p->pitch * p->height;
}

static void see_3d(struct event_device_alloc *alloc, const struct cuda_alloc_3d *p)
{
	alloc->address = p->out->address;
	alloc->bytes = p->out->pitch * p->height * p->depth;
}

static void see_create(struct event_device_alloc *alloc, const struct cuda_create *p)
{
	alloc->address = *p->out;
	alloc->bytes = p->bytes;
	alloc->device = DEVICE_NOT_KNOWN;
	if (p->properties && p->properties->location.type == CUDA_LOCATION_DEVICE)
		alloc->device = (uint32_t)p->properties->location.id;
	else
		alloc->flags |= BLOCK_IS_OF_HOST;
}

static void see_map(struct event_device_alloc *alloc, const struct cuda_map *p)
{
	alloc->address = p->address;
	alloc->bytes = p->bytes;
	alloc->handle = p->handle;
}

static void see_plain(struct event_device_alloc *alloc, const struct cuda_alloc *p, uint8_t action)
{
	alloc->address = *p->out;
	if (action == CUDA_RETAIN)
		return;
	if (action == CUDA_IMPORT) {
		alloc->flags |= BLOCK_IS_UNSIZED;
		return;
	}
	alloc->bytes = p->bytes;
	if (action == CUDA_ALLOC_ASYNC)
		alloc->stream = p->where;
	if (action != CUDA_ALLOC_POOL)
		return;
	alloc->pool = p->where;
	alloc->stream = p->stream;
	alloc->device = device_of_pool(p->where, alloc->device);
}

/* All descriptions of arrays begin with where the handle goes. */
static void see_array(struct event_device_alloc *alloc, const void *parameters, uint8_t action)
{
	alloc->address = **(uint64_t *const *)parameters;
	alloc->bytes = torsh_cuda_array_bytes(action, parameters);
	if (!alloc->bytes)
		alloc->flags |= BLOCK_IS_UNSIZED;
}

static void see_node_alloc(struct event_device_alloc *alloc, const struct cuda_node_alloc *node)
{
	alloc->address = node->address;
	alloc->bytes = node->bytes;
	if (node->properties.location.type == CUDA_LOCATION_DEVICE)
		alloc->device = (uint32_t)node->properties.location.id;
}

static void see_alloc(struct event_device_alloc *alloc, const void *parameters, uint8_t action)
{
	const struct cuda_extent *extent = parameters;

	switch (action) {
	case CUDA_ALLOC_PITCH:
		see_pitch(alloc, parameters);
		break;
	case CUDA_ALLOC_3D:
		see_3d(alloc, parameters);
		break;
	case CUDA_CREATE:
		see_create(alloc, parameters);
		break;
	case CUDA_MAP:
		see_map(alloc, parameters);
		break;
	case CUDA_REGISTER:
		alloc->address = extent->address;
		alloc->bytes = extent->bytes;
		break;
	case CUDA_GRAPH_ALLOC:
		see_node_alloc(alloc, ((const struct cuda_graph_alloc *)parameters)->node);
		break;
	case CUDA_GRAPH_NODE:
		see_node_alloc(alloc, &((const struct cuda_graph_node *)parameters)->node->alloc);
		break;
	case CUDA_GRAPH_EDGED_NODE:
		see_node_alloc(alloc, &((const struct cuda_graph_edged_node *)parameters)->node->alloc);
		break;
	case CUDA_ARRAY:
	case CUDA_ARRAY_3D:
	case CUDA_ARRAY_MIPMAPPED:
	case CUDA_CHANNELS:
	case CUDA_CHANNELS_3D:
	case CUDA_CHANNELS_MIPMAPPED:
		see_array(alloc, parameters, action);
		break;
	default:
		see_plain(alloc, parameters, action);
	}
}

/* ---- what is told -------------------------------------------------------------------------------------------------- */

/* It gets nothing by itself, also where CUPTI does not say which graph's node it made. */
static int is_of_node(uint8_t action)
{
	return action == CUDA_GRAPH_ALLOC || action == CUDA_GRAPH_NODE || action == CUDA_GRAPH_EDGED_NODE;
}

static int is_of_pool(uint8_t action)
{
	return action == CUDA_ALLOC_ASYNC || action == CUDA_ALLOC_POOL || is_of_node(action);
}

static void tell_alloc(const struct cuda_memory_call *call, const struct memory_call *what, const void *frame)
{
	struct event event = {
		.id = EVENT_DEVICE_ALLOC,
		.device_alloc =
			{
				.api = labels[what - calls],
				.kind = what->kind,
				.context = call->context,
				.device = call->device,
				.flags = what->flags,
			},
	};

	see_alloc(&event.device_alloc, call->parameters, what->action);
	torsh_cuda_room_see(event.device_alloc.device, is_of_pool(what->action));
	if (torsh_cuda_graph_memory_got(&event.device_alloc, frame) || is_of_node(what->action))
		return;
	torsh_cuda_send_from(&event, torsh_config.with_stack ? frame : NULL);
}

static int is_free(uint8_t action)
{
	return action == CUDA_FREE || action == CUDA_FREE_ASYNC || action == CUDA_UNMAP;
}

static void tell_free(const struct cuda_memory_call *call, const struct memory_call *what)
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

	if (event.device_free.address)
		torsh_cuda_send(&event);
}

static void tell_failure(const struct cuda_memory_call *call, const struct memory_call *what, int result)
{
	struct event event = {
		.id = EVENT_DEVICE_FREE_FAILED,
		.device_free_failed = {.kind = what->kind,
				       .address = ((const struct cuda_extent *)call->parameters)->address,
				       .result = result},
	};

	if (event.device_free_failed.address)
		torsh_cuda_send(&event);
}

static const struct cuda_node *node_of(const struct cuda_memory_call *call, uint8_t action)
{
	if (action == CUDA_GRAPH_NODE)
		return ((const struct cuda_graph_node *)call->parameters)->node;
	return ((const struct cuda_graph_edged_node *)call->parameters)->node;
}

/* A node of any type. */
static void tell_node(const struct cuda_memory_call *call, const struct memory_call *what, const void *frame)
{
	const struct cuda_node *node = node_of(call, what->action);

	if (node->type == CUDA_NODE_ALLOC)
		tell_alloc(call, what, frame);
	else if (node->type == CUDA_NODE_FREE)
		torsh_cuda_graph_memory_freed(labels[what - calls], node->freed, 0);
}

static void at_success(const struct cuda_memory_call *call, const struct memory_call *what, const void *frame)
{
	const struct cuda_pool_of_device *of_device = call->parameters;
	const struct cuda_pool *pool = call->parameters;
	const struct cuda_free *freed = call->parameters;
	const struct cuda_graph_instantiate *instantiated = call->parameters;

	switch (what->action) {
	case CUDA_FREE_ASYNC:
		torsh_cuda_graph_memory_freed(labels[what - calls], freed->address, 1);
		break;
	case CUDA_FREE:
	case CUDA_UNMAP:
		break;
	case CUDA_GRAPH_FREE:
		torsh_cuda_graph_memory_freed(labels[what - calls],
					      ((const struct cuda_graph_free *)call->parameters)->address, 0);
		break;
	case CUDA_GRAPH_NODE:
	case CUDA_GRAPH_EDGED_NODE:
		tell_node(call, what, frame);
		break;
	case CUDA_GRAPH_INSTANTIATE:
		torsh_cuda_graph_memory_instantiated(instantiated, instantiated->flags);
		break;
	case CUDA_GRAPH_INSTANTIATE_WITH:
		torsh_cuda_graph_memory_instantiated(instantiated, *instantiated->with);
		break;
	case CUDA_GRAPH_LAUNCH:
		torsh_cuda_graph_memory_launched(((const struct cuda_graph_launch *)call->parameters)->executable);
		break;
	case CUDA_POOL_CREATE:
		if (pool->properties && pool->properties->location.type == CUDA_LOCATION_DEVICE)
			learn_pool(*pool->out, (uint32_t)pool->properties->location.id);
		break;
	case CUDA_POOL_OF_DEVICE:
		learn_pool(*of_device->out, (uint32_t)of_device->device);
		break;
	case CUDA_ROOM:
		torsh_cuda_room_told(call->parameters, call->device);
		break;
	default:
		tell_alloc(call, what, frame);
	}
}

/* ---- a call -------------------------------------------------------------------------------------------------------- */

void torsh_cuda_memory_begins(uint32_t number, const struct cuda_memory_call *call)
{
	const struct memory_call *what = &calls[number - 1];

	torsh_cuda_graph_memory_call_begins();
	if (is_free(what->action))
		tell_free(call, what);
}

void torsh_cuda_memory_ends(uint32_t number, const struct cuda_memory_call *call, int result, const void *frame)
{
	const struct memory_call *what = &calls[number - 1];

	if (!result)
		at_success(call, what, frame);
	else if (is_free(what->action))
		tell_failure(call, what, result);
}

void torsh_cuda_memory_context_ends(uint32_t context)
{
	struct event event = {.id = EVENT_DEVICE_FREE, .device_free = {.kind = BLOCK_CONTEXT, .context = context}};

	torsh_cuda_send(&event);
}

/* "cudaMallocAsync_ptsz_v11020" is cudaMallocAsync, "cuMemAlloc_v2" itself. */
static size_t known_length(const char *name, size_t length)
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
	size_t n = known_length(name, length);

	if (!torsh_config.profile_memory)
		return 0;
	for (size_t i = 0; i < N_MEMORY_CALLS; i++) {
		if (strcmp(calls[i].name, name) && (strlen(calls[i].name) != n || memcmp(calls[i].name, name, n)))
			continue;
		if (!labels[i])
			labels[i] = torsh_label(name, n);
		return (uint32_t)i + 1;
	}
	return 0;
}
