/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_request.h"

#include "collectors/cuda/memory/cuda_array.h"
#include "collectors/cuda/memory/cuda_pools.h"

/*
 * ---- requests ----------------------------------------------------------------------------------
 */

static void read_plain(struct event_device_alloc *alloc, const struct cuda_alloc *p, uint8_t action)
{
	alloc->bytes = p->bytes;
	if (action == CUDA_ALLOC_ASYNC)
		alloc->stream = p->where;
	if (action != CUDA_ALLOC_POOL)
		return;
	alloc->pool = p->where;
	alloc->stream = p->stream;
	torsh_cuda_pools_locate(alloc);
}

static void read_create(struct event_device_alloc *alloc, const struct cuda_create *p)
{
	alloc->bytes = p->bytes;
	alloc->device = DEVICE_NOT_KNOWN;
	if (p->properties && p->properties->location.type == CUDA_LOCATION_DEVICE)
		alloc->device = (uint32_t)p->properties->location.id;
	else
		alloc->flags |= BLOCK_IS_OF_HOST;
}

static void read_map(struct event_device_alloc *alloc, const struct cuda_map *p)
{
	alloc->address = p->address;
	alloc->bytes = p->bytes;
	alloc->handle = p->handle;
}

static void read_register(struct event_device_alloc *alloc, const struct cuda_extent *p)
{
	alloc->address = p->address;
	alloc->bytes = p->bytes;
}

static void read_node(struct event_device_alloc *alloc, const struct cuda_node_alloc *node)
{
	alloc->bytes = node->bytes;
	if (node->properties.location.type == CUDA_LOCATION_DEVICE)
		alloc->device = (uint32_t)node->properties.location.id;
}

static void read_array(struct event_device_alloc *alloc, const void *parameters, uint8_t action)
{
	alloc->bytes = torsh_cuda_array_bytes(action, parameters);
	if (!alloc->bytes)
		alloc->flags |= BLOCK_IS_UNSIZED;
}

static const struct cuda_node_alloc *node_of(const void *parameters, uint8_t action)
{
	if (action == CUDA_GRAPH_ALLOC)
		return ((const struct cuda_graph_alloc *)parameters)->node;
	if (action == CUDA_GRAPH_NODE)
		return &((const struct cuda_graph_node *)parameters)->node->alloc;
	return &((const struct cuda_graph_edged_node *)parameters)->node->alloc;
}

void torsh_cuda_request_before(struct event_device_alloc *alloc, const void *parameters,
			       uint8_t action)
{
	const struct cuda_alloc_pitch *pitch = parameters;
	const struct cuda_alloc_3d *box = parameters;

	switch (action) {
	case CUDA_ALLOC:
	case CUDA_ALLOC_ASYNC:
	case CUDA_ALLOC_POOL:
		read_plain(alloc, parameters, action);
		break;
	case CUDA_ALLOC_PITCH:
		alloc->bytes = pitch->width * pitch->height;
		break;
	case CUDA_ALLOC_3D:
		alloc->bytes = box->width * box->height * box->depth;
		break;
	case CUDA_CREATE:
		read_create(alloc, parameters);
		break;
	case CUDA_MAP:
		read_map(alloc, parameters);
		break;
	case CUDA_REGISTER:
		read_register(alloc, parameters);
		break;
	case CUDA_GRAPH_ALLOC:
	case CUDA_GRAPH_NODE:
	case CUDA_GRAPH_EDGED_NODE:
		read_node(alloc, node_of(parameters, action));
		break;
	case CUDA_ARRAY:
	case CUDA_ARRAY_3D:
	case CUDA_ARRAY_MIPMAPPED:
	case CUDA_CHANNELS:
	case CUDA_CHANNELS_3D:
	case CUDA_CHANNELS_MIPMAPPED:
		read_array(alloc, parameters, action);
		break;
	case CUDA_RETAIN:
		break;
	default:
		alloc->flags |= BLOCK_IS_UNSIZED;
	}
}

/* ---- results --------------------------------------------------------------------------------- */

void torsh_cuda_request_after(struct event_device_alloc *alloc, const void *parameters,
			      uint8_t action)
{
	const struct cuda_alloc_pitch *pitch = parameters;
	const struct cuda_alloc_3d *box = parameters;

	torsh_cuda_request_before(alloc, parameters, action);
	switch (action) {
	case CUDA_MAP:
	case CUDA_REGISTER:
		break;
	case CUDA_ALLOC_PITCH:
		alloc->address = *pitch->out;
		alloc->bytes = *pitch->pitch * pitch->height;
		break;
	case CUDA_ALLOC_3D:
		alloc->address = box->out->address;
		alloc->bytes = box->out->pitch * box->height * box->depth;
		break;
	case CUDA_GRAPH_ALLOC:
	case CUDA_GRAPH_NODE:
	case CUDA_GRAPH_EDGED_NODE:
		alloc->address = node_of(parameters, action)->address;
		break;
	default:
		/* The others begin with the place of the address or handle. */
		alloc->address = **(uint64_t *const *)parameters;
	}
}
