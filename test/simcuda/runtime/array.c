/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arrays and memory of other processes, in the runtime's words. */
#include "test/simcuda/runtime/runtime.h"

#include <stdbool.h>
#include <string.h>

static CUarray_format format_of(const struct cudaChannelFormatDesc *desc)
{
	bool is_signed = desc->f == cudaChannelFormatKindSigned;

	switch (desc->x) {
	case 8:
		return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
	case 16:
		if (desc->f == cudaChannelFormatKindFloat)
			return CU_AD_FORMAT_HALF;
		return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
	default:
		if (desc->f == cudaChannelFormatKindFloat)
			return CU_AD_FORMAT_FLOAT;
		return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
	}
}

static CUDA_ARRAY3D_DESCRIPTOR shape_of(const struct cudaChannelFormatDesc *desc,
					struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Format = format_of(desc),
		.NumChannels = 1u + (desc->y > 0) + (desc->z > 0) + (desc->w > 0),
		.Flags = flags,
	};

	return shape;
}

cudaError_t do_cudaMallocArray(const cudaMallocArray_p *p)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(
		p->desc, (struct cudaExtent){.width = p->width, .height = p->height}, p->flags);
	CUDA_ARRAY_DESCRIPTOR flat = {
		.Width = shape.Width,
		.Height = shape.Height,
		.Format = shape.Format,
		.NumChannels = shape.NumChannels,
	};
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_driver.cuArrayCreate((CUarray *)p->array, &flat));
}

cudaError_t do_cudaMalloc3DArray(const cudaMalloc3DArray_p *p)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(p->desc, p->extent, p->flags);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuArray3DCreate((CUarray *)p->array, &shape));
}

cudaError_t do_cudaMallocMipmappedArray(const cudaMallocMipmappedArray_p *p)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(p->desc, p->extent, p->flags);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuMipmappedArrayCreate(
					      (CUmipmappedArray *)p->mipmappedArray, &shape,
					      p->numLevels));
}

cudaError_t do_cudaMalloc3D(const cudaMalloc3D_p *p)
{
	size_t pitch;
	CUdeviceptr address;
	CUresult result = rt_begin();

	if (!result)
		result = rt_driver.cuMemAllocPitch(&address, &pitch, p->extent.width,
						   p->extent.height * p->extent.depth, 4);
	if (!result)
		*p->pitchedDevPtr = (struct cudaPitchedPtr){.ptr = (void *)(uintptr_t)address,
							    .pitch = pitch,
							    .xsize = p->extent.width,
							    .ysize = p->extent.height};
	return (cudaError_t)result;
}

cudaError_t do_cudaIpcOpenMemHandle(const cudaIpcOpenMemHandle_p *p)
{
	CUipcMemHandle handle;
	CUresult result = rt_begin();

	memcpy(&handle, &p->handle, sizeof(handle));
	return (cudaError_t)(result ? result
				    : rt_driver.cuIpcOpenMemHandle((CUdeviceptr *)p->devPtr, handle,
								   p->flags));
}
