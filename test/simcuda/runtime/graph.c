/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Nodes of graphs with descriptions that differ between the runtime and the driver. */
#include "test/simcuda/runtime/runtime.h"

#include <string.h>

/*
 * A kernel's launch: the runtime has two structs for it, and the driver two with the same field
 * names.
 */
#define KERNEL_LAUNCH(n)                                                                        \
	.func = rt_function((n)->func), .gridDimX = (n)->gridDim.x, .gridDimY = (n)->gridDim.y, \
	.gridDimZ = (n)->gridDim.z, .blockDimX = (n)->blockDim.x, .blockDimY = (n)->blockDim.y, \
	.blockDimZ = (n)->blockDim.z, .sharedMemBytes = (n)->sharedMemBytes,                    \
	.kernelParams = (n)->kernelParams, .extra = (n)->extra

cudaError_t do_cudaGraphAddKernelNode(const cudaGraphAddKernelNode_p *p)
{
	CUDA_KERNEL_NODE_PARAMS params = {KERNEL_LAUNCH(p->pNodeParams)};
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuGraphAddKernelNode(p->pGraphNode, p->graph,
								     p->pDependencies,
								     p->numDependencies, &params));
}

cudaError_t do_cudaGraphAddMemcpyNode1D(const cudaGraphAddMemcpyNode1D_p *p)
{
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)p->src,
		.srcPitch = p->count,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)p->dst,
		.dstPitch = p->count,
		.WidthInBytes = p->count,
		.Height = 1,
		.Depth = 1,
	};
	CUresult result = rt_begin();

	copy.srcHeight = copy.dstHeight = 1;
	return (cudaError_t)(result ? result
				    : rt_driver.cuGraphAddMemcpyNode(
					      p->pGraphNode, p->graph, p->pDependencies,
					      p->numDependencies, &copy, NULL));
}

cudaError_t do_cudaGraphAddMemsetNode(const cudaGraphAddMemsetNode_p *p)
{
	const struct cudaMemsetParams *m = p->pMemsetParams;
	CUDA_MEMSET_NODE_PARAMS params = {
		.dst = (CUdeviceptr)m->dst,
		.pitch = m->pitch,
		.value = m->value,
		.elementSize = m->elementSize,
		.width = m->width,
		.height = m->height,
	};
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuGraphAddMemsetNode(
					      p->pGraphNode, p->graph, p->pDependencies,
					      p->numDependencies, &params, NULL));
}

/* Those of CUDA 12 have other forms of it, or none. */
#if CUDART_VERSION >= 13000
/*
 * But for kernels and copies both libraries describe a node by the same bytes, what is returned
 * among them.
 */
cudaError_t do_cudaGraphAddNode(const cudaGraphAddNode_p *p)
{
	CUgraphNodeParams *params = (CUgraphNodeParams *)p->nodeParams, kernel;
	CUresult result = rt_begin();

	if (result)
		return (cudaError_t)result;
	if (p->nodeParams->type == cudaGraphNodeTypeMemcpy)
		return cudaErrorNotSupported;
	if (p->nodeParams->type == cudaGraphNodeTypeKernel) {
		kernel = (CUgraphNodeParams){
			.type = CU_GRAPH_NODE_TYPE_KERNEL,
			.kernel = {KERNEL_LAUNCH(&p->nodeParams->kernel)},
		};
		params = &kernel;
	}
	return (cudaError_t)rt_driver.cuGraphAddNode(p->pGraphNode, p->graph, p->pDependencies,
						     (const CUgraphEdgeData *)p->dependencyData,
						     p->numDependencies, params);
}
#endif
