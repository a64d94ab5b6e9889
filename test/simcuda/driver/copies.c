/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Copies and memsets. */
#include "test/simcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	struct sim_work work;
	int result = sim_copy_make(&work, to, from, bytes, false);

	return result ? (CUresult)result : drv_submit_and_wait(NULL, &work);
}

/* What comes to pageable memory is there when the call returns. */
static CUresult submit_copy(CUstream stream, const struct sim_work *work)
{
	if (work->copy.to_kind == SIM_MEMORY_PAGEABLE && !drv_capturing(stream))
		return drv_submit_and_wait(stream, work);
	return drv_submit(stream, work);
}

static CUresult copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	struct sim_work work;
	int result = sim_copy_make(&work, to, from, bytes, true);

	return result ? (CUresult)result : submit_copy(stream, &work);
}

static CUdeviceptr address_of(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

CUresult do_cuMemcpy(const cuMemcpy_p *p)
{
	return copy(p->dst, p->src, p->ByteCount);
}

CUresult do_cuMemcpyAsync(const cuMemcpyAsync_p *p)
{
	return copy_async(p->dst, p->src, p->ByteCount, p->hStream);
}

CUresult do_cuMemcpyHtoD_v2(const cuMemcpyHtoD_v2_p *p)
{
	return copy(p->dstDevice, address_of(p->srcHost), p->ByteCount);
}

CUresult do_cuMemcpyDtoH_v2(const cuMemcpyDtoH_v2_p *p)
{
	return copy(address_of(p->dstHost), p->srcDevice, p->ByteCount);
}

CUresult do_cuMemcpyDtoD_v2(const cuMemcpyDtoD_v2_p *p)
{
	return copy(p->dstDevice, p->srcDevice, p->ByteCount);
}

CUresult do_cuMemcpyHtoDAsync_v2(const cuMemcpyHtoDAsync_v2_p *p)
{
	return copy_async(p->dstDevice, address_of(p->srcHost), p->ByteCount, p->hStream);
}

CUresult do_cuMemcpyDtoHAsync_v2(const cuMemcpyDtoHAsync_v2_p *p)
{
	return copy_async(address_of(p->dstHost), p->srcDevice, p->ByteCount, p->hStream);
}

CUresult do_cuMemcpyDtoDAsync_v2(const cuMemcpyDtoDAsync_v2_p *p)
{
	return copy_async(p->dstDevice, p->srcDevice, p->ByteCount, p->hStream);
}

CUresult do_cuMemcpyPeer(const cuMemcpyPeer_p *p)
{
	return copy(p->dstDevice, p->srcDevice, p->ByteCount);
}

CUresult do_cuMemcpyPeerAsync(const cuMemcpyPeerAsync_p *p)
{
	return copy_async(p->dstDevice, p->srcDevice, p->ByteCount, p->hStream);
}

/* Where the first byte lies, and 0 for an array. */
static CUdeviceptr end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t offset)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		return address_of(host) + offset;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		return device + offset;
	default:
		return 0;
	}
}

static CUresult make_rows(struct sim_work *work, struct sim_copy_work *rows)
{
	if (!rows->to || !rows->from)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!rows->to_pitch)
		rows->to_pitch = rows->width;
	if (!rows->from_pitch)
		rows->from_pitch = rows->width;
	return (CUresult)sim_copy_make_rows(work, rows);
}

static CUresult copy2d_work(struct sim_work *work, const CUDA_MEMCPY2D *c, bool is_async)
{
	struct sim_copy_work rows = {
		.to = end_of(c->dstMemoryType, c->dstHost, c->dstDevice,
			     c->dstY * c->dstPitch + c->dstXInBytes),
		.from = end_of(c->srcMemoryType, c->srcHost, c->srcDevice,
			       c->srcY * c->srcPitch + c->srcXInBytes),
		.width = c->WidthInBytes,
		.height = c->Height,
		.to_pitch = c->dstPitch,
		.from_pitch = c->srcPitch,
		.is_async = is_async,
	};

	return make_rows(work, &rows);
}

/* Of several layers only what lies in them without gaps can be expressed as rows. */
CUresult drv_copy3d_work(struct sim_work *work, const CUDA_MEMCPY3D *c, bool is_async)
{
	size_t to_row = (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch,
	       depth = c->Depth ? c->Depth : 1;
	size_t from_row = (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch;
	struct sim_copy_work rows = {
		.to = end_of(c->dstMemoryType, c->dstHost, c->dstDevice, to_row + c->dstXInBytes),
		.from = end_of(c->srcMemoryType, c->srcHost, c->srcDevice,
			       from_row + c->srcXInBytes),
		.width = c->WidthInBytes,
		.height = (c->Height ? c->Height : 1) * depth,
		.to_pitch = c->dstPitch,
		.from_pitch = c->srcPitch,
		.is_async = is_async,
	};

	if (depth > 1 && (c->srcHeight != c->Height || c->dstHeight != c->Height))
		return CUDA_ERROR_NOT_SUPPORTED;
	return make_rows(work, &rows);
}

static CUresult copy2d(const CUDA_MEMCPY2D *c, bool is_async, CUstream stream)
{
	struct sim_work work;
	CUresult result = copy2d_work(&work, c, is_async);

	if (result)
		return result;
	return is_async ? submit_copy(stream, &work) : drv_submit_and_wait(NULL, &work);
}

CUresult do_cuMemcpy2D_v2(const cuMemcpy2D_v2_p *p)
{
	return copy2d(p->pCopy, false, NULL);
}

CUresult do_cuMemcpy2DUnaligned_v2(const cuMemcpy2DUnaligned_v2_p *p)
{
	return copy2d(p->pCopy, false, NULL);
}

CUresult do_cuMemcpy2DAsync_v2(const cuMemcpy2DAsync_v2_p *p)
{
	return copy2d(p->pCopy, true, p->hStream);
}

CUresult do_cuMemcpy3D_v2(const cuMemcpy3D_v2_p *p)
{
	struct sim_work work;
	CUresult result = drv_copy3d_work(&work, p->pCopy, false);

	return result ? result : drv_submit_and_wait(NULL, &work);
}

CUresult do_cuMemcpy3DAsync_v2(const cuMemcpy3DAsync_v2_p *p)
{
	struct sim_work work;
	CUresult result = drv_copy3d_work(&work, p->pCopy, true);

	return result ? result : submit_copy(p->hStream, &work);
}

/* Rows of n elements of so many bytes. */
static struct sim_memset_work rows_of(CUdeviceptr to, uint32_t value, unsigned element_bytes,
				      size_t n, size_t height, size_t pitch)
{
	return (struct sim_memset_work){
		.to = to,
		.value = value,
		.element_bytes = element_bytes,
		.width = n * element_bytes,
		.height = height,
		.pitch = pitch ? pitch : n * element_bytes,
	};
}

static CUresult set(struct sim_memset_work rows)
{
	struct sim_work work;
	int result = sim_memset_make(&work, &rows);

	return result ? (CUresult)result : drv_submit_and_wait(NULL, &work);
}

static CUresult set_async(struct sim_memset_work rows, CUstream stream)
{
	struct sim_work work;

	rows.is_async = true;
	int result = sim_memset_make(&work, &rows);
	return result ? (CUresult)result : drv_submit(stream, &work);
}

CUresult drv_memset_node_work(struct sim_work *work, const CUDA_MEMSET_NODE_PARAMS *params)
{
	struct sim_memset_work rows =
		rows_of(params->dst, params->value, params->elementSize, params->width,
			params->height ? params->height : 1, params->pitch);

	rows.is_async = true;
	return (CUresult)sim_memset_make(work, &rows);
}

#define MEMSET(bits, value)                                                                     \
	CUresult do_cuMemsetD##bits##_v2(const cuMemsetD##bits##_v2_p *p)                       \
	{                                                                                       \
		return set(rows_of(p->dstDevice, p->value, bits / 8, p->N, 1, 0));              \
	}                                                                                       \
	CUresult do_cuMemsetD##bits##Async(const cuMemsetD##bits##Async_p *p)                   \
	{                                                                                       \
		return set_async(rows_of(p->dstDevice, p->value, bits / 8, p->N, 1, 0),         \
				 p->hStream);                                                   \
	}                                                                                       \
	CUresult do_cuMemsetD2D##bits##_v2(const cuMemsetD2D##bits##_v2_p *p)                   \
	{                                                                                       \
		return set(rows_of(p->dstDevice, p->value, bits / 8, p->Width, p->Height,       \
				   p->dstPitch));                                               \
	}                                                                                       \
	CUresult do_cuMemsetD2D##bits##Async(const cuMemsetD2D##bits##Async_p *p)               \
	{                                                                                       \
		return set_async(rows_of(p->dstDevice, p->value, bits / 8, p->Width, p->Height, \
					 p->dstPitch),                                          \
				 p->hStream);                                                   \
	}

MEMSET(8, uc)
MEMSET(16, us)
MEMSET(32, ui)
#undef MEMSET
