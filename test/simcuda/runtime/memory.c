/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Copies by their kind, variables of devices, and the attributes of a pointer. */
#include "test/simcuda/runtime/runtime.h"

#include <string.h>

static CUdeviceptr address_of(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static CUresult copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	CUresult result = rt_begin();

	if (result || !bytes)
		return result;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_driver.cuMemcpyHtoD(address_of(to), from, bytes);
	case cudaMemcpyDeviceToHost:
		return rt_driver.cuMemcpyDtoH(to, address_of(from), bytes);
	case cudaMemcpyDeviceToDevice:
		return rt_driver.cuMemcpyDtoD(address_of(to), address_of(from), bytes);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_driver.cuMemcpy(address_of(to), address_of(from), bytes);
	default:
		return (CUresult)cudaErrorInvalidMemcpyDirection;
	}
}

static CUresult copy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			   CUstream stream)
{
	CUresult result = rt_begin();

	if (result || !bytes)
		return result;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_driver.cuMemcpyHtoDAsync(address_of(to), from, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return rt_driver.cuMemcpyDtoHAsync(to, address_of(from), bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return rt_driver.cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_driver.cuMemcpyAsync(address_of(to), address_of(from), bytes, stream);
	default:
		return (CUresult)cudaErrorInvalidMemcpyDirection;
	}
}

cudaError_t do_cudaMemcpy(const cudaMemcpy_p *p)
{
	return (cudaError_t)copy(p->dst, p->src, p->count, p->kind);
}

cudaError_t do_cudaMemcpyAsync(const cudaMemcpyAsync_p *p)
{
	return (cudaError_t)copy_async(p->dst, p->src, p->count, p->kind, p->stream);
}

static CUDA_MEMCPY2D rows_of(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			     size_t width, size_t height)
{
	CUDA_MEMCPY2D rows = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = address_of(from),
		.srcPitch = from_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = address_of(to),
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height,
	};

	return rows;
}

cudaError_t do_cudaMemcpy2D(const cudaMemcpy2D_p *p)
{
	CUDA_MEMCPY2D rows = rows_of(p->dst, p->dpitch, p->src, p->spitch, p->width, p->height);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_driver.cuMemcpy2D(&rows));
}

cudaError_t do_cudaMemcpy2DAsync(const cudaMemcpy2DAsync_p *p)
{
	CUDA_MEMCPY2D rows = rows_of(p->dst, p->dpitch, p->src, p->spitch, p->width, p->height);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_driver.cuMemcpy2DAsync(&rows, p->stream));
}

/* The pitched pointer has the distance of layers in rows. Of arrays the driver copies nothing. */
static CUDA_MEMCPY3D box_of(const struct cudaMemcpy3DParms *copy)
{
	CUDA_MEMCPY3D box = {
		.srcXInBytes = copy->srcPos.x,
		.srcY = copy->srcPos.y,
		.srcZ = copy->srcPos.z,
		.srcMemoryType = copy->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.srcDevice = address_of(copy->srcPtr.ptr),
		.srcPitch = copy->srcPtr.pitch,
		.srcHeight = copy->srcPtr.ysize,
		.dstXInBytes = copy->dstPos.x,
		.dstY = copy->dstPos.y,
		.dstZ = copy->dstPos.z,
		.dstMemoryType = copy->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.dstDevice = address_of(copy->dstPtr.ptr),
		.dstPitch = copy->dstPtr.pitch,
		.dstHeight = copy->dstPtr.ysize,
		.WidthInBytes = copy->extent.width,
		.Height = copy->extent.height,
		.Depth = copy->extent.depth,
	};

	return box;
}

cudaError_t do_cudaMemcpy3D(const cudaMemcpy3D_p *p)
{
	CUDA_MEMCPY3D box = box_of(p->p);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_driver.cuMemcpy3D(&box));
}

cudaError_t do_cudaMemcpy3DAsync(const cudaMemcpy3DAsync_p *p)
{
	CUDA_MEMCPY3D box = box_of(p->p);
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_driver.cuMemcpy3DAsync(&box, p->stream));
}

cudaError_t do_cudaGetSymbolAddress(const cudaGetSymbolAddress_p *p)
{
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_variable(p->symbol, (CUdeviceptr *)p->devPtr, NULL));
}

cudaError_t do_cudaGetSymbolSize(const cudaGetSymbolSize_p *p)
{
	CUdeviceptr address;
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result : rt_variable(p->symbol, &address, p->size));
}

/* The part of a variable that is copied. */
static CUresult part_of(const void *symbol, size_t offset, size_t count, char **part)
{
	CUdeviceptr address;
	size_t bytes;
	CUresult result = rt_begin();

	if (!result)
		result = rt_variable(symbol, &address, &bytes);
	if (!result && (offset > bytes || count > bytes - offset))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*part = (char *)(uintptr_t)address + offset;
	return result;
}

cudaError_t do_cudaMemcpyToSymbol(const cudaMemcpyToSymbol_p *p)
{
	char *to;
	CUresult result = part_of(p->symbol, p->offset, p->count, &to);

	return (cudaError_t)(result ? result : copy(to, p->src, p->count, p->kind));
}

cudaError_t do_cudaMemcpyFromSymbol(const cudaMemcpyFromSymbol_p *p)
{
	char *from;
	CUresult result = part_of(p->symbol, p->offset, p->count, &from);

	return (cudaError_t)(result ? result : copy(p->dst, from, p->count, p->kind));
}

cudaError_t do_cudaMemcpyToSymbolAsync(const cudaMemcpyToSymbolAsync_p *p)
{
	char *to;
	CUresult result = part_of(p->symbol, p->offset, p->count, &to);

	return (cudaError_t)(result ? result
				    : copy_async(to, p->src, p->count, p->kind, p->stream));
}

static enum cudaMemoryType type_of(unsigned type, unsigned is_managed)
{
	if (is_managed)
		return cudaMemoryTypeManaged;
	return type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
}

/* Memory that CUDA does not manage is unregistered, and no error. */
cudaError_t do_cudaPointerGetAttributes(const cudaPointerGetAttributes_p *p)
{
	unsigned type = 0, is_managed = 0;
	CUdeviceptr device_pointer = 0;
	void *host_pointer = NULL;
	int ordinal = 0;
	CUpointer_attribute attributes[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *values[] = {&type, &is_managed, &device_pointer, &host_pointer, &ordinal};
	CUresult result = rt_begin();

	if (result)
		return (cudaError_t)result;
	memset(p->attributes, 0, sizeof(*p->attributes));
	rt_driver.cuPointerGetAttributes(sizeof(values) / sizeof(values[0]), attributes, values,
					 address_of(p->ptr));
	p->attributes->type = type ? type_of(type, is_managed) : cudaMemoryTypeUnregistered;
	p->attributes->device = type ? ordinal : -2;
	p->attributes->devicePointer = (void *)(uintptr_t)device_pointer;
	p->attributes->hostPointer = type ? host_pointer : (void *)(uintptr_t)p->ptr;
	return cudaSuccess;
}

/* A device until 12, a place since 13. */
#if CUDART_VERSION < 13000
cudaError_t do_cudaMemAdvise(const cudaMemAdvise_p *p)
{
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuMemAdvise(address_of(p->devPtr), p->count,
							    (CUmem_advise)p->advice, p->device));
}

cudaError_t do_cudaMemPrefetchAsync(const cudaMemPrefetchAsync_p *p)
{
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuMemPrefetchAsync(address_of(p->devPtr), p->count,
								   p->dstDevice, p->stream));
}
#else
cudaError_t do_cudaMemAdvise(const cudaMemAdvise_p *p)
{
	CUmemLocation location = {.type = (CUmemLocationType)p->location.type,
				  .id = p->location.id};
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuMemAdvise(address_of(p->devPtr), p->count,
							    (CUmem_advise)p->advice, location));
}

cudaError_t do_cudaMemPrefetchAsync(const cudaMemPrefetchAsync_p *p)
{
	CUmemLocation location = {.type = (CUmemLocationType)p->location.type,
				  .id = p->location.id};
	CUresult result = rt_begin();

	return (cudaError_t)(result ? result
				    : rt_driver.cuMemPrefetchAsync(address_of(p->devPtr), p->count,
								   location, p->flags, p->stream));
}
#endif
