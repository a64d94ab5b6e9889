/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Nodes of graphs that get and free memory, those that depend on a condition, and nodes by their
 * type.
 */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/graph_memory.h"
#include "test/simcuda/engine/memory/pool.h"

#include <stdlib.h>

/* Where a node is to be added. */
struct place {
	CUgraphNode *out;
	CUgraph graph;
	const CUgraphNode *after;
	size_t n;
};

#define PLACE(p) \
	(&(struct place){(p)->phGraphNode, (p)->hGraph, (p)->dependencies, (p)->numDependencies})

static CUresult add(const struct place *place, const struct sim_work *work)
{
	return drv_graph_add(place->out, place->graph, place->after, place->n, work);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static CUresult add_alloc(const struct place *place, const CUmemPoolProps *props, size_t bytes,
			  CUdeviceptr *address)
{
	struct sim_work work = {.kind = SIM_ALLOC};
	struct sim_device *device = sim_device(props->location.id);
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (result)
		return result;
	if (!device || !sim_graph_is_live((struct sim_graph *)place->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = (CUresult)sim_graph_memory_reserve(
		device, context->id, (struct sim_graph *)place->graph, bytes, &work.address);
	if (result)
		return result;
	result = add(place, &work);
	if (result)
		sim_graph_memory_hold(work.address, -1);
	else
		*address = work.address;
	return result;
}

CUresult do_cuGraphAddMemAllocNode(const cuGraphAddMemAllocNode_p *p)
{
	return add_alloc(PLACE(p), &p->nodeParams->poolProps, p->nodeParams->bytesize,
			 &p->nodeParams->dptr);
}

static CUresult add_free(const struct place *place, CUdeviceptr address)
{
	const struct sim_graph *graph = (struct sim_graph *)place->graph;

	if (!sim_graph_is_live(graph) || !sim_graph_memory_free_in(graph, address))
		return CUDA_ERROR_INVALID_VALUE;
	return add(place, &(struct sim_work){.kind = SIM_RELEASE, .address = address});
}

CUresult do_cuGraphAddMemFreeNode(const cuGraphAddMemFreeNode_p *p)
{
	return add_free(PLACE(p), p->dptr);
}

CUresult drv_capture_alloc(struct sim_stream *stream, const struct sim_pool *pool, size_t bytes,
			   CUdeviceptr *address)
{
	struct sim_device *device = pool ? pool->device : stream->context->device;
	struct sim_work work = {.kind = SIM_ALLOC};
	CUresult result = (CUresult)sim_graph_memory_reserve(
		device, stream->context->id, stream->end.capture->graph, bytes, &work.address);

	if (result)
		return result;
	result = (CUresult)sim_stream_submit(stream, &work, NULL);
	if (result)
		sim_graph_memory_hold(work.address, -1);
	else
		*address = work.address;
	return result;
}

CUresult drv_capture_free(struct sim_stream *stream, CUdeviceptr address)
{
	if (!sim_graph_memory_free_in(stream->end.capture->graph, address))
		return CUDA_ERROR_INVALID_VALUE;
	return (CUresult)sim_stream_submit(
		stream, &(struct sim_work){.kind = SIM_RELEASE, .address = address}, NULL);
}

CUresult do_cuDeviceGraphMemTrim(const cuDeviceGraphMemTrim_p *p)
{
	if (!sim_device(p->device))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_graph_memory_trim(sim_device(p->device));
	return CUDA_SUCCESS;
}

/* The value of a device's attribute, or NULL. */
static uint64_t *find_attribute(CUdevice ordinal, CUgraphMem_attribute attribute)
{
	struct sim_device *device = sim_device(ordinal);

	if (!device)
		return NULL;
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		return &device->graph_pool->used_bytes;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		return &device->graph_pool->used_high_bytes;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		return &device->graph_pool->reserved_bytes;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		return &device->graph_pool->reserved_high_bytes;
	default:
		return NULL;
	}
}

CUresult do_cuDeviceGetGraphMemAttribute(const cuDeviceGetGraphMemAttribute_p *p)
{
	const uint64_t *value = find_attribute(p->device, p->attr);

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	*(cuuint64_t *)p->value = *value;
	sim_unlock();
	return CUDA_SUCCESS;
}

/* High watermarks can be set, to zero only. */
CUresult do_cuDeviceSetGraphMemAttribute(const cuDeviceSetGraphMemAttribute_p *p)
{
	bool is_mark = p->attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
		       p->attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
	uint64_t *value = find_attribute(p->device, p->attr);

	if (!value || !is_mark || *(cuuint64_t *)p->value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	*value = 0;
	sim_unlock();
	return CUDA_SUCCESS;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* What a CUgraphConditionalHandle points to; kept for ever. */
struct condition {
	struct sim_graph *graph;
	unsigned value; /* at each launch */
};

CUresult do_cuGraphConditionalHandleCreate(const cuGraphConditionalHandleCreate_p *p)
{
	struct condition *condition;

	if (!sim_graph_is_live((struct sim_graph *)p->hGraph))
		return CUDA_ERROR_INVALID_VALUE;
	condition = calloc(1, sizeof(*condition));
	if (!condition)
		return CUDA_ERROR_OUT_OF_MEMORY;
	condition->graph = (struct sim_graph *)p->hGraph;
	condition->value = p->flags & CU_GRAPH_COND_ASSIGN_DEFAULT ? p->defaultLaunchValue : 0;
	*p->pHandle_out = (CUgraphConditionalHandle)(uintptr_t)condition;
	return CUDA_SUCCESS;
}

static bool has_valid_size(const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	switch (params->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return params->size == 1 || params->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return params->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return params->size > 0;
	default:
		return false;
	}
}

static CUresult add_condition(const struct place *place, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	const struct condition *condition = (struct condition *)(uintptr_t)params->handle;
	struct sim_work work = {.kind = SIM_CONDITIONAL};
	CUresult result;

	if (!condition || !has_valid_size(params))
		return CUDA_ERROR_INVALID_VALUE;
	work.condition = (struct sim_condition_work){
		.kind = (enum sim_condition_kind)params->type,
		.value = condition->value,
		.n_bodies = params->size,
		.bodies = calloc(params->size, sizeof(struct sim_graph *)),
	};
	if (!work.condition.bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < params->size; i++)
		work.condition.bodies[i] = sim_graph_create();
	result = add(place, &work);
	if (!result)
		params->phGraph_out = (CUgraph *)work.condition.bodies;
	return result;
}

/* ---- by their type --------------------------------------------------------------------------- */

static CUresult add_kernel(const struct place *place, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct sim_work work;
	CUresult result = drv_kernel_node_work(&work, params);

	return result ? result : add(place, &work);
}

static CUresult add_copy(const struct place *place, const CUDA_MEMCPY3D *params)
{
	struct sim_work work;
	CUresult result = drv_copy3d_work(&work, params, true);

	if (result)
		return result;
	/* A node reads its source when it is launched. */
	free(work.copy.staged);
	work.copy.staged = NULL;
	return add(place, &work);
}

static CUresult add_memset(const struct place *place, const CUDA_MEMSET_NODE_PARAMS_v2 *params)
{
	struct sim_work work;
	/* The second version is the first with a context behind it. */
	CUresult result = drv_memset_node_work(&work, (const CUDA_MEMSET_NODE_PARAMS *)params);

	return result ? result : add(place, &work);
}

static CUresult add_by_type(const struct place *place, CUgraphNodeParams *params)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return add_kernel(place, (const CUDA_KERNEL_NODE_PARAMS *)&params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return add_copy(place, &params->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return add_memset(place, &params->memset);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return add(place, &(struct sim_work){.kind = SIM_EMPTY});
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return drv_graph_add_child(place->out, place->graph, place->after, place->n,
					   params->graph.graph);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return add_alloc(place, &params->alloc.poolProps, params->alloc.bytesize,
				 &params->alloc.dptr);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return add_free(place, params->free.dptr);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return add_condition(place, &params->conditional);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult do_cuGraphAddNode(const cuGraphAddNode_p *p)
{
	return add_by_type(PLACE(p), p->nodeParams);
}

CUresult do_cuGraphAddNode_v2(const cuGraphAddNode_v2_p *p)
{
	return add_by_type(PLACE(p), p->nodeParams);
}
