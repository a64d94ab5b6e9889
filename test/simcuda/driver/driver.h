/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the files of the simulated libcuda share. A handle of CUDA is a pointer to the engine's
 * object of the same noun.
 */
#ifndef SIMCUDA_DRIVER_H
#define SIMCUDA_DRIVER_H

#include "driver_api.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/function.h"
#include "test/simcuda/engine/result.h"

/* The current context of this thread; 3, 4 or 201 where there is none. */
CUresult drv_context(struct sim_context **context);

/* The stream of a handle, with the default ones resolved for the current call. */
CUresult drv_stream(CUstream handle, struct sim_stream **stream);

CUresult drv_submit(CUstream handle, const struct sim_work *work);

/* Submit, and wait until it has ended. */
CUresult drv_submit_and_wait(CUstream handle, const struct sim_work *work);

/* The work of a launch; 400 for what is no function. */
CUresult drv_kernel_work(struct sim_work *work, CUfunction function, const CUlaunchConfig *config);
CUresult drv_kernel_node_work(struct sim_work *work, const CUDA_KERNEL_NODE_PARAMS *params);

/* The work of copies between what CUDA's structs describe; arrays are not supported. */
CUresult drv_copy3d_work(struct sim_work *work, const CUDA_MEMCPY3D *copy, bool is_async);
CUresult drv_memset_node_work(struct sim_work *work, const CUDA_MEMSET_NODE_PARAMS *params);

/* Add a node that does the work to a graph, and report it to the tracer. */
CUresult drv_graph_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
		       const struct sim_work *work);
CUresult drv_graph_add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
			     CUgraph child);

/* Memory that is got, or freed, in a stream that is being captured. pool may be NULL. */
CUresult drv_capture_alloc(struct sim_stream *stream, const struct sim_pool *pool, size_t bytes,
			   CUdeviceptr *address);
CUresult drv_capture_free(struct sim_stream *stream, CUdeviceptr address);

struct sim_function *drv_function_of(CUfunction handle);
struct sim_stream *drv_capturing(CUstream handle);

#endif
