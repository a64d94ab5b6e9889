/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory of devices and of the host, and the attributes of an address. */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/memory/memory.h"

#include <string.h>

#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/others.h"
#include "test/simcuda/engine/memory/pool.h"

enum { PITCH = 512 };

CUresult do_cuMemGetInfo_v2(const cuMemGetInfo_v2_p *p)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (result)
		return result;
	sim_lock();
	*p->free = sim_memory_left(context->device);
	sim_unlock();
	*p->total = sim_config()->device_bytes;
	return CUDA_SUCCESS;
}

/* What an allocation or a free needs before it is done. */
static CUresult begin_change(struct sim_context **context)
{
	CUresult result = drv_context(context);

	if (!result)
		result = (CUresult)sim_capture_check_call();
	return result ? result : (CUresult)(*context)->error;
}

static CUresult alloc_device(CUdeviceptr *address, size_t bytes)
{
	struct sim_context *context;
	CUresult result = begin_change(&context);
	uint64_t found;

	if (!result && !address)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = (CUresult)sim_memory_alloc(context->device, context->id, bytes, &found);
	if (!result)
		*address = found;
	return result;
}

CUresult do_cuMemAlloc_v2(const cuMemAlloc_v2_p *p)
{
	return alloc_device(p->dptr, p->bytesize);
}

CUresult do_cuMemAllocPitch_v2(const cuMemAllocPitch_v2_p *p)
{
	*p->pPitch = (p->WidthInBytes + PITCH - 1) & -(size_t)PITCH;
	return alloc_device(p->dptr, *p->pPitch * p->Height);
}

CUresult do_cuMemFree_v2(const cuMemFree_v2_p *p)
{
	struct sim_context *context;
	CUresult result = begin_change(&context);

	if (result || !p->dptr)
		return result;
	/* As the real one: nothing that runs may still use it. */
	result = (CUresult)sim_context_wait(context);
	return result ? result : (CUresult)sim_memory_free(p->dptr, SIM_MEMORY_DEVICE);
}

static CUresult alloc_host(void **p, size_t bytes, enum sim_memory_kind kind)
{
	struct sim_context *context;
	CUresult result = begin_change(&context);
	uint64_t address;

	if (!result)
		result = (CUresult)sim_memory_alloc_host(context->device, context->id, bytes, kind,
							 &address);
	if (!result)
		*p = (void *)(uintptr_t)address;
	return result;
}

CUresult do_cuMemHostAlloc(const cuMemHostAlloc_p *p)
{
	return alloc_host(p->pp, p->bytesize, SIM_MEMORY_PINNED);
}

CUresult do_cuMemAllocHost_v2(const cuMemAllocHost_v2_p *p)
{
	return alloc_host(p->pp, p->bytesize, SIM_MEMORY_PINNED);
}

CUresult do_cuMemAllocManaged(const cuMemAllocManaged_p *p)
{
	return alloc_host((void **)p->dptr, p->bytesize, SIM_MEMORY_MANAGED);
}

CUresult do_cuMemFreeHost(const cuMemFreeHost_p *p)
{
	struct sim_context *context;
	CUresult result = begin_change(&context);

	return result || !p->p
		       ? result
		       : (CUresult)sim_memory_free((uint64_t)(uintptr_t)p->p, SIM_MEMORY_PINNED);
}

CUresult do_cuMemHostRegister_v2(const cuMemHostRegister_v2_p *p)
{
	struct sim_context *context;
	CUresult result = begin_change(&context);

	return result ? result
		      : (CUresult)sim_memory_register(context->device, context->id, p->p,
						      p->bytesize);
}

CUresult do_cuMemHostUnregister(const cuMemHostUnregister_p *p)
{
	return (CUresult)sim_memory_unregister(p->p);
}

CUresult do_cuMemHostGetDevicePointer_v2(const cuMemHostGetDevicePointer_v2_p *p)
{
	struct sim_range range;

	if (!sim_memory_lookup((uint64_t)(uintptr_t)p->p, &range) ||
	    range.kind != SIM_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*p->pdptr = (CUdeviceptr)(uintptr_t)p->p;
	return CUDA_SUCCESS;
}

CUresult do_cuMemHostGetFlags(const cuMemHostGetFlags_p *p)
{
	struct sim_range range;

	if (!sim_memory_lookup((uint64_t)(uintptr_t)p->p, &range))
		return CUDA_ERROR_INVALID_VALUE;
	*p->pFlags = CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult do_cuMemGetAddressRange_v2(const cuMemGetAddressRange_v2_p *p)
{
	struct sim_range range;

	if (!sim_memory_lookup(p->dptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (p->pbase)
		*p->pbase = range.base;
	if (p->psize)
		*p->psize = range.bytes;
	return CUDA_SUCCESS;
}

/* If the attribute has a value for memory that CUDA does not manage, it is written too. */
static CUresult read_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct sim_range range = {0};
	bool is_known = sim_memory_lookup(address, &range);
	bool is_host = range.kind == SIM_MEMORY_PINNED;
	struct sim_device *device = sim_device(range.device);

	if (!is_known)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(void **)data = device ? device->primary : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = address;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(uint64_t *)data = range.kind == SIM_MEMORY_DEVICE ? 0 : address;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = range.kind == SIM_MEMORY_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range.device;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = range.id;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range.base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range.bytes;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = true;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = range.pool;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)data = false;
		break;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult do_cuPointerGetAttribute(const cuPointerGetAttribute_p *p)
{
	return p->data ? read_attribute(p->data, p->attribute, p->ptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuPointerGetAttributes(const cuPointerGetAttributes_p *p)
{
	for (unsigned i = 0; i < p->numAttributes; i++)
		if (read_attribute(p->data[i], p->attributes[i], p->ptr))
			*(uint32_t *)p->data[i] = 0;
	return CUDA_SUCCESS;
}

static CUresult advise(CUdeviceptr address)
{
	struct sim_range range;

	return sim_memory_lookup(address, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuMemAdvise(const cuMemAdvise_p *p)
{
	return advise(p->devPtr);
}

CUresult do_cuMemAdvise_v2(const cuMemAdvise_v2_p *p)
{
	return advise(p->devPtr);
}

/* Pages are where they are already: only the order of the stream is kept. */
static CUresult prefetch(CUdeviceptr address, CUstream stream)
{
	CUresult result = advise(address);

	return result ? result : drv_submit(stream, &(struct sim_work){.kind = SIM_EMPTY});
}

CUresult do_cuMemPrefetchAsync(const cuMemPrefetchAsync_p *p)
{
	return prefetch(p->devPtr, p->hStream);
}

CUresult do_cuMemPrefetchAsync_v2(const cuMemPrefetchAsync_v2_p *p)
{
	return prefetch(p->devPtr, p->hStream);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static CUresult alloc_from(struct sim_pool *pool, CUstream handle, size_t bytes,
			   CUdeviceptr *address)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(handle, &stream);
	uint64_t found;

	if (result)
		return result;
	if (stream->end.capture)
		return drv_capture_alloc(stream, pool, bytes, address);
	result = (CUresult)sim_pool_alloc(pool ? pool : stream->context->device->current_pool,
					  stream, bytes, &found);
	if (!result)
		*address = found;
	return result;
}

CUresult do_cuMemAllocAsync(const cuMemAllocAsync_p *p)
{
	return alloc_from(NULL, p->hStream, p->bytesize, p->dptr);
}

CUresult do_cuMemAllocFromPoolAsync(const cuMemAllocFromPoolAsync_p *p)
{
	return alloc_from((struct sim_pool *)p->pool, p->hStream, p->bytesize, p->dptr);
}

CUresult do_cuMemFreeAsync(const cuMemFreeAsync_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (result || !p->dptr)
		return result;
	return stream->end.capture ? drv_capture_free(stream, p->dptr)
				   : (CUresult)sim_pool_free(p->dptr, stream);
}

CUresult do_cuMemPoolCreate(const cuMemPoolCreate_p *p)
{
	struct sim_device *device = sim_device(p->poolProps->location.id);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	*p->pool = (CUmemoryPool)sim_pool_create(device);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult do_cuMemPoolDestroy(const cuMemPoolDestroy_p *p)
{
	struct sim_pool *pool = (struct sim_pool *)p->pool;

	if (!pool || pool == pool->device->default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	sim_pool_destroy(pool);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult do_cuMemPoolTrimTo(const cuMemPoolTrimTo_p *p)
{
	sim_pool_trim((struct sim_pool *)p->pool, p->minBytesToKeep);
	return CUDA_SUCCESS;
}

CUresult do_cuMemPoolSetAttribute(const cuMemPoolSetAttribute_p *p)
{
	struct sim_pool *pool = (struct sim_pool *)p->pool;
	CUresult result = CUDA_SUCCESS;

	sim_lock();
	switch (p->attr) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold_bytes = *(cuuint64_t *)p->value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		pool->reserved_high_bytes = pool->reserved_bytes;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		pool->used_high_bytes = pool->used_bytes;
		break;
	/* How memory is used again between streams: here it is used again only once it is free. */
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	sim_unlock();
	return result;
}

CUresult do_cuMemPoolGetAttribute(const cuMemPoolGetAttribute_p *p)
{
	const struct sim_pool *pool = (const struct sim_pool *)p->pool;
	CUresult result = CUDA_SUCCESS;
	cuuint64_t *value = p->value;

	sim_lock();
	switch (p->attr) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*value = pool->threshold_bytes;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*value = pool->reserved_bytes;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*value = pool->reserved_high_bytes;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*value = pool->used_bytes;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*value = pool->used_high_bytes;
		break;
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)p->value = 1;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	sim_unlock();
	return result;
}

/* Every device reaches all memory here. */
CUresult do_cuMemPoolSetAccess(const cuMemPoolSetAccess_p *p)
{
	return p->pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuMemPoolGetAccess(const cuMemPoolGetAccess_p *p)
{
	*p->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}
