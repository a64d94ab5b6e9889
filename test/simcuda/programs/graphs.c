/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUDA graphs. graphs WHAT:
 *	lines		kernels of one name for each line that launches them, with a comment:
 *			captured, added, launched
 *	memory		memory that graphs get, freed in every way that there is, and left
 *	random SEED	graphs with memory at random
 *	conditions	nodes that run their graphs once, not at all, or several times; graphs
 *			within graphs
 *	trim		what no graph has any more is given back
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/need.h"

#define KIB ((size_t)1024)
#define MODULE ".version 7.0\n.target sm_70\n.address_size 64\n"
#define NOT_INLINED __attribute__((noinline))
#define N_LAUNCHES 4
#define N_BLOCKS 6

static CUcontext context;
static CUstream stream;
static CUmodule module;

static void need_failure(int result, const char *what)
{
	if (result)
		return;
	fprintf(stderr, "%s did not fail\n", what);
	exit(1);
}

#define NEED_FAILURE(call) need_failure((int)(call), #call)

static CUfunction kernel(const char *name)
{
	CUfunction function;

	NEED(cuModuleGetFunction(&function, module, name));
	return function;
}

#define LAUNCH(name) cuLaunchKernel(kernel(name), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)

static void begin_capture(void)
{
	NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraph end_capture(void)
{
	CUgraph graph;

	NEED(cuStreamEndCapture(stream, &graph));
	return graph;
}

static CUgraphExec instantiate(CUgraph graph, unsigned flags)
{
	CUgraphExec exec;

	NEED(cuGraphInstantiate(&exec, graph, flags));
	return exec;
}

static void launch(CUgraphExec exec, int n)
{
	for (int i = 0; i < n; i++)
		NEED(cuGraphLaunch(exec, stream));
	NEED(cuStreamSynchronize(stream));
}

static CUgraphNode add_kernel(CUgraph graph, const char *name, CUgraphNode after)
{
	CUDA_KERNEL_NODE_PARAMS params = {.func = kernel(name),
					  .gridDimX = 1,
					  .gridDimY = 1,
					  .gridDimZ = 1,
					  .blockDimX = 32,
					  .blockDimY = 1,
					  .blockDimZ = 1};
	CUgraphNode node;

	/* line of added */
	NEED(cuGraphAddKernelNode(&node, graph, &after, after ? 1 : 0, &params));
	return node;
}

/* ---- lines: a comment names the kernel that its line launches -------------------------------- */

static NOT_INLINED void capture_some(void)
{
	NEED(LAUNCH("captured")); /* line of captured */
	for (int i = 0; i < 3; i++)
		NEED(LAUNCH("captured_thrice")); /* line of captured_thrice */
}

static NOT_INLINED void launch_some(void)
{
	for (int i = 0; i < 5; i++)
		NEED(LAUNCH("launched")); /* line of launched */
}

static void go_lines(void)
{
	CUgraph graph, clone;

	begin_capture();
	capture_some();
	graph = end_capture();
	add_kernel(graph, "added", NULL);
	NEED(cuGraphClone(&clone, graph));
	launch(instantiate(graph, 0), N_LAUNCHES);
	launch(instantiate(clone, 0), N_LAUNCHES);
	launch_some();
	NEED(cuStreamSynchronize(stream));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static CUDA_MEM_ALLOC_NODE_PARAMS memory_of(size_t n)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = n * KIB,
	};
}

static NOT_INLINED CUdeviceptr add_alloc(CUgraph graph, size_t n, CUgraphNode *node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = memory_of(n);

	NEED(cuGraphAddMemAllocNode(node, graph, NULL, 0, &params));
	return params.dptr;
}

/* Got, filled and freed in the graph. */
static void go_by_hand(void)
{
	CUgraphNode alloc, filled, freed;
	CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 1, .width = 100 * KIB, .height = 1};
	CUgraph graph;

	NEED(cuGraphCreate(&graph, 0));
	fill.dst = add_alloc(graph, 100, &alloc);
	NEED(cuGraphAddMemsetNode(&filled, graph, &alloc, 1, &fill, context));
	NEED(cuGraphAddMemFreeNode(&freed, graph, &filled, 1, fill.dst));
	NEED_FAILURE(cuGraphAddMemFreeNode(&freed, graph, &filled, 1, fill.dst));
	NEED_FAILURE(cuGraphAddMemFreeNode(&freed, graph, &filled, 1, 0x1000));
	NEED_FAILURE(cuGraphDestroyNode(filled));
	NEED_FAILURE(cuMemFree(fill.dst));
	launch(instantiate(graph, 0), 3);
	NEED_FAILURE(cuMemFreeAsync(fill.dst, stream));
}

/* What is left at the end: of the last launch. */
static NOT_INLINED void leak_captured(void)
{
	CUdeviceptr p;
	CUgraph graph, clone;
	CUgraphExec exec;

	begin_capture();
	NEED(cuMemAllocAsync(&p, 200 * KIB, stream));
	NEED(LAUNCH("uses"));
	graph = end_capture();
	exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	NEED_FAILURE(cuGraphInstantiate(&exec, graph, 0));
	NEED_FAILURE(cuGraphClone(&clone, graph));
	launch(exec, 3);
}

/* Got by a graph, freed by the program, by another graph, and not by a launch that fails. */
static void go_from_graph_to_graph(void)
{
	CUdeviceptr p;
	CUgraphExec getting, freeing;

	begin_capture();
	NEED(cuMemAllocAsync(&p, 300 * KIB, stream));
	getting = instantiate(end_capture(), 0);
	launch(getting, 1);
	NEED_FAILURE(cuGraphLaunch(getting, stream));
	NEED(cuMemFreeAsync(p, stream));
	launch(getting, 1);
	NEED(cuMemFree(p));
	launch(getting, 1);
	begin_capture();
	NEED(cuMemFreeAsync(p, stream));
	freeing = instantiate(end_capture(), 0);
	for (int i = 0; i < 2; i++) {
		launch(freeing, 1);
		NEED_FAILURE(cuGraphLaunch(freeing, stream));
		launch(getting, 1);
	}
	launch(freeing, 1);
}

static void go_by_the_runtime(void)
{
	struct cudaMemAllocNodeParams params = {
		.poolProps = {.allocType = cudaMemAllocationTypePinned,
			      .location = {.type = cudaMemLocationTypeDevice}},
		.bytesize = 50 * KIB,
	};
	struct cudaGraphNodeParams node_params = {.type = cudaGraphNodeTypeMemAlloc};
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaGraphNode_t alloc, other, freed;
	void *p;

	NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	NEED(cudaMallocAsync(&p, 400 * KIB, stream));
	NEED(cudaMemsetAsync(p, 1, 400 * KIB, stream));
	NEED(cudaFreeAsync(p, stream));
	NEED(cudaStreamEndCapture(stream, &graph));
	NEED(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	memcpy(&node_params.alloc, &params, sizeof(params));
	node_params.alloc.bytesize = 25 * KIB;
	NEED(cudaGraphAddNode(&other, graph, &alloc, NULL, 1, &node_params));
	NEED(cudaGraphAddMemFreeNode(&freed, graph, &other, 1, params.dptr));
	node_params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemFree,
						   .free = {node_params.alloc.dptr}};
	NEED(cudaGraphAddNode(&freed, graph, &freed, NULL, 1, &node_params));
	NEED(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 5; i++)
		NEED(cudaGraphLaunch(exec, stream));
	NEED(cudaStreamSynchronize(stream));
}

static void go_memory(void)
{
	CUdeviceptr beside;

	NEED(cuMemAlloc(&beside, 1000 * KIB));
	go_by_hand();
	leak_captured();
	go_from_graph_to_graph();
	go_by_the_runtime();
	NEED(cuMemFree(beside));
	leak_captured();
}

static uint64_t attribute(CUgraphMem_attribute which)
{
	cuuint64_t value;

	NEED(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

static void expect(uint64_t value, uint64_t wanted, const char *what)
{
	if (value == wanted)
		return;
	fprintf(stderr, "%s is %llu, not %llu\n", what, (unsigned long long)value,
		(unsigned long long)wanted);
	exit(1);
}

#define EXPECT(which, wanted) expect(attribute(CU_GRAPH_MEM_ATTR_##which), wanted, #which)

static void go_trim(void)
{
	CUdeviceptr p;
	CUgraph graph;
	CUgraphExec exec;

	begin_capture();
	NEED(cuMemAllocAsync(&p, 512 * KIB, stream));
	graph = end_capture();
	exec = instantiate(graph, 0);
	EXPECT(USED_MEM_CURRENT, 0);
	launch(exec, 1);
	EXPECT(USED_MEM_CURRENT, 512 * KIB);
	NEED(cuMemFree(p));
	EXPECT(USED_MEM_CURRENT, 0);
	EXPECT(USED_MEM_HIGH, 512 * KIB);
	NEED(cuDeviceGraphMemTrim(0));
	EXPECT(RESERVED_MEM_CURRENT, 512 * KIB);
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
	NEED(cudaDeviceGraphMemTrim(0));
	EXPECT(RESERVED_MEM_CURRENT, 0);
	EXPECT(RESERVED_MEM_HIGH, 512 * KIB);
}

/*
 * Each graph frees some of its blocks itself; the others are freed by the program, by
 * chance, or left.
 */
static void go_random(unsigned seed)
{
	CUdeviceptr blocks[N_BLOCKS];
	bool is_left[N_BLOCKS] = {0};
	CUgraphExec exec;

	srand(seed);
	for (int graph = 0; graph < 20; graph++) {
		begin_capture();
		for (int i = 0; i < N_BLOCKS; i++)
			NEED(cuMemAllocAsync(&blocks[i], (size_t)(1 + rand() % 500) * KIB, stream));
		for (int i = 0; i < N_BLOCKS; i++) {
			is_left[i] = rand() % 3 == 0;
			if (!is_left[i])
				NEED(cuMemFreeAsync(blocks[i], stream));
		}
		exec = instantiate(end_capture(), CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
		for (int i = 0; i < 5; i++) {
			launch(exec, 1);
			for (int k = 0; k < N_BLOCKS; k++) {
				if (is_left[k] && rand() % 2)
					NEED(rand() % 2 ? cuMemFree(blocks[k])
							: cuMemFreeAsync(blocks[k], stream));
			}
		}
	}
}

/* ---- conditions ------------------------------------------------------------------------------ */

static CUgraph *add_condition(CUgraph graph, CUgraphConditionalNodeType type, unsigned size,
			      unsigned value)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode node;

	NEED(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, context, value,
					    CU_GRAPH_COND_ASSIGN_DEFAULT));
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	NEED(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	return params.conditional.phGraph_out;
}

static void capture_into(CUgraph body, const char *name)
{
	NEED(cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0,
					 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	NEED(LAUNCH(name));
	NEED(cuStreamEndCapture(stream, &body));
}

static void go_conditions(void)
{
	CUgraph graph, child, *bodies, *inner;
	CUgraphNode node;

	NEED(cuGraphCreate(&graph, 0));
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_IF, 2, 1);
	capture_into(bodies[0], "if_then");
	capture_into(bodies[1], "never");
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_IF, 2, 0);
	capture_into(bodies[0], "never");
	capture_into(bodies[1], "if_else");
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_IF, 1, 0);
	add_kernel(bodies[0], "never", NULL);
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 1);
	add_kernel(bodies[0], "in_loop", add_kernel(bodies[0], "in_loop", NULL));
	inner = add_condition(bodies[0], CU_GRAPH_COND_TYPE_WHILE, 1, 7);
	add_kernel(inner[0], "in_inner_loop", NULL);
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 0);
	add_kernel(bodies[0], "never", NULL);
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_SWITCH, 3, 2);
	for (int i = 0; i < 3; i++)
		add_kernel(bodies[i], i == 2 ? "in_switch" : "never", NULL);
	bodies = add_condition(graph, CU_GRAPH_COND_TYPE_SWITCH, 1, 5);
	add_kernel(bodies[0], "never", NULL);
	NEED(cuGraphCreate(&child, 0));
	add_kernel(child, "in_child", add_kernel(child, "in_child", NULL));
	NEED(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	NEED_FAILURE(cuGraphClone(&child, graph));
	launch(instantiate(graph, 0), N_LAUNCHES);
}

/*
 * ----------------------------------------------------------------------------------------------
 */

static void begin(void)
{
	CUdevice device;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuModuleLoadData(&module, MODULE));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	begin();
	if (!strcmp(what, "lines"))
		go_lines();
	else if (!strcmp(what, "memory"))
		go_memory();
	else if (!strcmp(what, "random"))
		go_random(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	else if (!strcmp(what, "conditions"))
		go_conditions();
	else if (!strcmp(what, "trim"))
		go_trim();
	else
		return 2;
	return 0;
}
