/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Copies and prefetches many at a time, and those with attributes. What is in a batch is done in
 * its order; an error ends it where it is.
 */
#include "test/simcuda/driver/driver.h"

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/memory/memory.h"

#if CUDA_VERSION >= 12080

static bool is_legacy(CUstream stream)
{
	const struct sim_call *call = sim_call_current();

	return stream == CU_STREAM_LEGACY || (!stream && !(call && call->is_per_thread));
}

static CUresult copy_one(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	struct sim_work work;
	int result = sim_copy_make(&work, to, from, bytes, true);

	return result ? (CUresult)result : drv_submit(stream, &work);
}

/*
 * Boxes with gaps between their layers cannot be expressed as rows; arrays cannot be copied at all.
 */
static CUresult copy_box(const CUDA_MEMCPY3D_BATCH_OP *box, CUstream stream)
{
	struct sim_work work;
	struct sim_copy_work rows = {
		.to = box->dst.op.ptr.ptr,
		.from = box->src.op.ptr.ptr,
		.width = box->extent.width,
		.height = box->extent.height * box->extent.depth,
		.to_pitch =
			box->dst.op.ptr.rowLength ? box->dst.op.ptr.rowLength : box->extent.width,
		.from_pitch =
			box->src.op.ptr.rowLength ? box->src.op.ptr.rowLength : box->extent.width,
		.is_async = true,
	};
	int result;

	if (box->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    box->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    (box->dst.op.ptr.layerHeight && box->dst.op.ptr.layerHeight != box->extent.height) ||
	    (box->src.op.ptr.layerHeight && box->src.op.ptr.layerHeight != box->extent.height))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = sim_copy_make_rows(&work, &rows);
	return result ? (CUresult)result : drv_submit(stream, &work);
}

static CUresult copy_many(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
			  size_t n, size_t n_attributes, size_t *failed, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	size_t i = 0;

	if (is_legacy(stream) || !to || !from || !sizes || !n || !n_attributes || n_attributes > n)
		return CUDA_ERROR_INVALID_VALUE;
	while (i < n && !(result = copy_one(to[i], from[i], sizes[i], stream)))
		i++;
	if (failed)
		*failed = result ? i : SIZE_MAX;
	return result;
}

static CUresult copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *boxes, size_t n, size_t *failed,
			   CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	size_t i = 0;

	if (is_legacy(stream) || !boxes || !n)
		return CUDA_ERROR_INVALID_VALUE;
	while (i < n && !(result = copy_box(&boxes[i], stream)))
		i++;
	if (failed)
		*failed = result ? i : SIZE_MAX;
	return result;
}

CUresult do_cuMemcpyBatchAsync(const cuMemcpyBatchAsync_p *p)
{
	return copy_many(p->dsts, p->srcs, p->sizes, p->count, p->numAttrs, p->failIdx, p->hStream);
}

CUresult do_cuMemcpy3DBatchAsync(const cuMemcpy3DBatchAsync_p *p)
{
	return copy_boxes(p->opList, p->numOps, p->failIdx, p->hStream);
}
#endif

#if CUDA_VERSION >= 13000

CUresult do_cuMemcpyBatchAsync_v2(const cuMemcpyBatchAsync_v2_p *p)
{
	return copy_many(p->dsts, p->srcs, p->sizes, p->count, p->numAttrs, NULL, p->hStream);
}

CUresult do_cuMemcpy3DBatchAsync_v2(const cuMemcpy3DBatchAsync_v2_p *p)
{
	return copy_boxes(p->opList, p->numOps, NULL, p->hStream);
}

/* Pages are where they are already: only the order of the stream is kept. */
static CUresult prefetch_many(const CUdeviceptr *at, const size_t *sizes, size_t n,
			      size_t n_locations, CUstream stream)
{
	struct sim_range range;

	if (is_legacy(stream) || !at || !sizes || !n || !n_locations || n_locations > n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!sim_memory_lookup(at[i], &range) ||
		    range.base + range.bytes < at[i] + sizes[i])
			return CUDA_ERROR_INVALID_VALUE;
	return drv_submit(stream, &(struct sim_work){.kind = SIM_EMPTY});
}

CUresult do_cuMemPrefetchBatchAsync(const cuMemPrefetchBatchAsync_p *p)
{
	return prefetch_many(p->dptrs, p->sizes, p->count, p->numPrefetchLocs, p->hStream);
}

CUresult do_cuMemDiscardAndPrefetchBatchAsync(const cuMemDiscardAndPrefetchBatchAsync_p *p)
{
	return prefetch_many(p->dptrs, p->sizes, p->count, p->numPrefetchLocs, p->hStream);
}
#endif

#if CUDA_VERSION >= 13020

CUresult do_cuMemcpyWithAttributesAsync(const cuMemcpyWithAttributesAsync_p *p)
{
	return p->attr ? copy_one(p->dst, p->src, p->size, p->hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuMemcpy3DWithAttributesAsync(const cuMemcpy3DWithAttributesAsync_p *p)
{
	return p->op ? copy_box(p->op, p->hStream) : CUDA_ERROR_INVALID_VALUE;
}
#endif
