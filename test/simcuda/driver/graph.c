/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Graphs that are built by hand, and executable graphs; further nodes are in graph_nodes.c. Arrays
 * are not simulated.
 */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/graph.h"

#include <stdlib.h>
#include <string.h>

static struct sim_graph *graph_of(CUgraph handle)
{
	return sim_graph_is_live((struct sim_graph *)handle) ? (struct sim_graph *)handle : NULL;
}

static struct sim_graph_node *node_of(CUgraphNode handle)
{
	struct sim_graph_node *node = (struct sim_graph_node *)handle;

	return node && !node->is_removed ? node : NULL;
}

CUresult drv_graph_add(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t n,
		       const struct sim_work *work)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_graph *graph = graph_of(handle);
	struct sim_graph_node *node;

	if (!graph || (n && !after))
		return CUDA_ERROR_INVALID_VALUE;
	node = sim_graph_add(graph, work, (struct sim_graph_node *const *)after, n);
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	if (tracer && tracer->resource)
		tracer->resource(&(struct sim_resource_event){
			.what = SIM_NODE_CREATED, .graph = graph, .node = node});
	*out = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

CUresult do_cuGraphCreate(const cuGraphCreate_p *p)
{
	*p->phGraph = (CUgraph)sim_graph_create();
	return CUDA_SUCCESS;
}

CUresult do_cuGraphDestroy(const cuGraphDestroy_p *p)
{
	struct sim_graph *graph = graph_of(p->hGraph);

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_destroy(graph);
	return CUDA_SUCCESS;
}

/* As the interface has it; what cannot be cloned cannot be a child that is cloned either. */
static bool can_be_cloned(const struct sim_graph *graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->work.kind == SIM_CONDITIONAL)
			return false;
	return !graph->has_memory;
}

CUresult do_cuGraphClone(const cuGraphClone_p *p)
{
	struct sim_graph *graph = graph_of(p->originalGraph);

	if (graph && !can_be_cloned(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (graph)
		*p->phGraphClone = (CUgraph)sim_graph_clone(graph);
	return graph && *p->phGraphClone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGraphNodeFindInClone(const cuGraphNodeFindInClone_p *p)
{
	struct sim_graph *clone = graph_of(p->hClonedGraph);

	for (size_t i = 0; clone && i < clone->n_nodes; i++)
		if (clone->nodes[i]->original == (struct sim_graph_node *)p->hOriginalNode) {
			*p->phNode = (CUgraphNode)clone->nodes[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGraphAddKernelNode_v2(const cuGraphAddKernelNode_v2_p *p)
{
	struct sim_work work;
	CUresult result = drv_kernel_node_work(&work, p->nodeParams);

	return result ? result
		      : drv_graph_add(p->phGraphNode, p->hGraph, p->dependencies,
				      p->numDependencies, &work);
}

CUresult do_cuGraphAddMemcpyNode(const cuGraphAddMemcpyNode_p *p)
{
	struct sim_work work;
	CUresult result = drv_copy3d_work(&work, p->copyParams, true);

	if (result)
		return result;
	/* A node reads its source when it is launched. */
	free(work.copy.staged);
	work.copy.staged = NULL;
	return drv_graph_add(p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies, &work);
}

CUresult do_cuGraphAddMemsetNode(const cuGraphAddMemsetNode_p *p)
{
	struct sim_work work;
	CUresult result = drv_memset_node_work(&work, p->memsetParams);

	return result ? result
		      : drv_graph_add(p->phGraphNode, p->hGraph, p->dependencies,
				      p->numDependencies, &work);
}

CUresult do_cuGraphAddHostNode(const cuGraphAddHostNode_p *p)
{
	struct sim_work work = {.kind = SIM_HOST};

	work.host.call = p->nodeParams->fn;
	work.host.data = p->nodeParams->userData;
	return drv_graph_add(p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies, &work);
}

CUresult drv_graph_add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
			     CUgraph handle)
{
	struct sim_graph *child = graph_of(handle);

	if (!child)
		return CUDA_ERROR_INVALID_VALUE;
	if (!can_be_cloned(child))
		return CUDA_ERROR_NOT_SUPPORTED;
	return drv_graph_add(
		out, graph, after, n,
		&(struct sim_work){.kind = SIM_CHILD, .child = sim_graph_clone(child)});
}

CUresult do_cuGraphAddChildGraphNode(const cuGraphAddChildGraphNode_p *p)
{
	return drv_graph_add_child(p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies,
				   p->childGraph);
}

CUresult do_cuGraphAddEmptyNode(const cuGraphAddEmptyNode_p *p)
{
	return drv_graph_add(p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies,
			     &(struct sim_work){.kind = SIM_EMPTY});
}

CUresult do_cuGraphAddEventRecordNode(const cuGraphAddEventRecordNode_p *p)
{
	return drv_graph_add(
		p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies,
		&(struct sim_work){.kind = SIM_RECORD, .event = (struct sim_event *)p->event});
}

CUresult do_cuGraphAddEventWaitNode(const cuGraphAddEventWaitNode_p *p)
{
	return drv_graph_add(
		p->phGraphNode, p->hGraph, p->dependencies, p->numDependencies,
		&(struct sim_work){.kind = SIM_WAIT, .event = (struct sim_event *)p->event});
}

static CUresult add_dependencies(const CUgraphNode *froms, const CUgraphNode *tos, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct sim_graph_node *from = node_of(froms[i]), *to = node_of(tos[i]);

		if (!from || !to || from->graph != to->graph)
			return CUDA_ERROR_INVALID_VALUE;
		sim_graph_depend(to, &from, 1);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuGraphAddDependencies(const cuGraphAddDependencies_p *p)
{
	return add_dependencies(p->from, p->to, p->numDependencies);
}

CUresult do_cuGraphAddDependencies_v2(const cuGraphAddDependencies_v2_p *p)
{
	return add_dependencies(p->from, p->to, p->numDependencies);
}

CUresult do_cuGraphDestroyNode(const cuGraphDestroyNode_p *p)
{
	if (!node_of(p->hNode))
		return CUDA_ERROR_INVALID_VALUE;
	if (node_of(p->hNode)->graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	sim_graph_remove(node_of(p->hNode));
	return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetType(const cuGraphNodeGetType_p *p)
{
	static const CUgraphNodeType types[] = {
#define NODE(work, node) [SIM_##work] = CU_GRAPH_NODE_TYPE_##node,
#include "test/simcuda/driver/node_types.def"
#undef NODE
	};

	if (!node_of(p->hNode))
		return CUDA_ERROR_INVALID_VALUE;
	*p->type = types[node_of(p->hNode)->work.kind];
	return CUDA_SUCCESS;
}

/* As the interface has it: the number where out is NULL, else as many as fit. */
struct listing {
	CUgraphNode *out;
	size_t room, n;
};

static void list(struct listing *listing, const struct sim_graph_node *node)
{
	if (listing->out && listing->n < listing->room)
		listing->out[listing->n] = (CUgraphNode)node;
	listing->n++;
}

CUresult do_cuGraphGetNodes(const cuGraphGetNodes_p *p)
{
	struct sim_graph *graph = graph_of(p->hGraph);
	struct listing listing = {p->nodes, *p->numNodes, 0};

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->n_nodes; i++)
		list(&listing, graph->nodes[i]);
	*p->numNodes = listing.n;
	return CUDA_SUCCESS;
}

CUresult do_cuGraphGetRootNodes(const cuGraphGetRootNodes_p *p)
{
	struct sim_graph *graph = graph_of(p->hGraph);
	struct listing listing = {p->rootNodes, *p->numRootNodes, 0};

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (!graph->nodes[i]->n_after)
			list(&listing, graph->nodes[i]);
	*p->numRootNodes = listing.n;
	return CUDA_SUCCESS;
}

static CUresult list_dependencies(CUgraphNode handle, CUgraphNode *dependencies, size_t *n)
{
	struct sim_graph_node *node = node_of(handle);
	struct listing listing = {dependencies, *n, 0};

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < node->n_after; i++)
		list(&listing, node->after[i]);
	*n = listing.n;
	return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetDependencies(const cuGraphNodeGetDependencies_p *p)
{
	return list_dependencies(p->hNode, p->dependencies, p->numDependencies);
}

CUresult do_cuGraphNodeGetDependencies_v2(const cuGraphNodeGetDependencies_v2_p *p)
{
	CUresult result = list_dependencies(p->hNode, p->dependencies, p->numDependencies);

	if (!result && p->edgeData)
		memset(p->edgeData, 0, *p->numDependencies * sizeof(*p->edgeData));
	return result;
}

static CUresult instantiate(CUgraph handle, unsigned long long flags, CUgraphExec *out)
{
	struct sim_graph *graph = graph_of(handle);
	struct sim_exec *exec;
	CUresult result;

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	/* Its addresses are those of one executable graph at a time. */
	if (graph->has_memory && graph->n_execs)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = (CUresult)sim_exec_create(graph, &exec);
	if (result)
		return result;
	exec->frees_at_launch = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	*out = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

CUresult do_cuGraphInstantiateWithFlags(const cuGraphInstantiateWithFlags_p *p)
{
	return instantiate(p->hGraph, p->flags, p->phGraphExec);
}

CUresult do_cuGraphInstantiateWithParams(const cuGraphInstantiateWithParams_p *p)
{
	CUresult result = instantiate(p->hGraph, p->instantiateParams->flags, p->phGraphExec);

	if (!result)
		p->instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return result;
}

CUresult do_cuGraphLaunch(const cuGraphLaunch_p *p)
{
	struct sim_exec *exec = (struct sim_exec *)p->hGraph;
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result && !sim_exec_is_live(exec))
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : (CUresult)sim_exec_launch(exec, stream);
}

CUresult do_cuGraphUpload(const cuGraphUpload_p *p)
{
	return sim_exec_is_live((struct sim_exec *)p->hGraph) ? CUDA_SUCCESS
							      : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGraphExecDestroy(const cuGraphExecDestroy_p *p)
{
	struct sim_exec *exec = (struct sim_exec *)p->hGraphExec;

	if (!sim_exec_is_live(exec))
		return CUDA_ERROR_INVALID_VALUE;
	sim_exec_destroy(exec);
	return CUDA_SUCCESS;
}

/* ---- objects of the program's that graphs keep alive ----------------------------------------- */

CUresult do_cuUserObjectCreate(const cuUserObjectCreate_p *p)
{
	struct sim_user_object *object = calloc(1, sizeof(*object));

	*object = (struct sim_user_object){p->destroy, p->ptr, p->initialRefcount};
	*p->object_out = (CUuserObject)object;
	return CUDA_SUCCESS;
}

CUresult do_cuUserObjectRetain(const cuUserObjectRetain_p *p)
{
	((struct sim_user_object *)p->object)->n_refs += p->count;
	return CUDA_SUCCESS;
}

CUresult do_cuUserObjectRelease(const cuUserObjectRelease_p *p)
{
	sim_user_object_release((struct sim_user_object *)p->object, p->count);
	return CUDA_SUCCESS;
}

CUresult do_cuGraphRetainUserObject(const cuGraphRetainUserObject_p *p)
{
	struct sim_user_object *object = (struct sim_user_object *)p->object;

	if (!graph_of(p->graph))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_retain(graph_of(p->graph), object, p->count);
	if (p->flags & CU_GRAPH_USER_OBJECT_MOVE)
		object->n_refs -= p->count;
	return CUDA_SUCCESS;
}
