/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arrays, which hold as many bytes as their texels need: nothing is added for their layout, and
 * nothing is copied to or from them. A handle is the address of the memory.
 */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/memory/memory.h"

#include "test/simcuda/engine/capture.h"

static size_t channel_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static size_t at_least_one(size_t n)
{
	return n ? n : 1;
}

static size_t texels_of_level(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned level)
{
	size_t depth = shape->Flags & CUDA_ARRAY3D_LAYERED ? shape->Depth : shape->Depth >> level;

	return at_least_one(shape->Width >> level) * at_least_one(shape->Height >> level) *
	       at_least_one(depth);
}

static CUresult create(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned n_levels, void **handle)
{
	size_t texel_bytes = channel_bytes(shape->Format) * shape->NumChannels, texels = 0;
	struct sim_context *context;
	uint64_t address;
	CUresult result = drv_context(&context);

	if (!result)
		result = (CUresult)sim_capture_check_call();
	if (result)
		return result;
	if (!texel_bytes || !shape->Width)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned level = 0; level < n_levels; level++)
		texels += texels_of_level(shape, level);
	result = (CUresult)sim_memory_alloc_array(context->device, context->id,
						  texels * texel_bytes, &address);
	if (!result)
		*handle = (void *)(uintptr_t)address;
	return result;
}

CUresult do_cuArrayCreate_v2(const cuArrayCreate_v2_p *p)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = p->pAllocateArray->Width,
		.Height = p->pAllocateArray->Height,
		.Format = p->pAllocateArray->Format,
		.NumChannels = p->pAllocateArray->NumChannels,
	};

	return create(&shape, 1, (void **)p->pHandle);
}

CUresult do_cuArray3DCreate_v2(const cuArray3DCreate_v2_p *p)
{
	return create(p->pAllocateArray, 1, (void **)p->pHandle);
}

CUresult do_cuMipmappedArrayCreate(const cuMipmappedArrayCreate_p *p)
{
	return create(p->pMipmappedArrayDesc, p->numMipmapLevels, (void **)p->pHandle);
}

static CUresult destroy(void *handle)
{
	return (CUresult)sim_memory_free((uint64_t)(uintptr_t)handle, SIM_MEMORY_ARRAY);
}

CUresult do_cuArrayDestroy(const cuArrayDestroy_p *p)
{
	return destroy(p->hArray);
}

CUresult do_cuMipmappedArrayDestroy(const cuMipmappedArrayDestroy_p *p)
{
	return destroy(p->hMipmappedArray);
}
