/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices by number, and the contexts of threads. */
#include "test/simcuda/driver/driver.h"

#include <stdio.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/memory/pool.h"

enum {
	MAX_DEPTH = 32,
	FIRST_BUS = 0x1a,
	LOWEST_PRIORITY = 0,
	HIGHEST_PRIORITY = -5,
};

static _Thread_local struct sim_context *stack[MAX_DEPTH];
static _Thread_local int depth;

CUresult drv_context(struct sim_context **context)
{
	int result = sim_check_begun();

	*context = depth ? stack[depth - 1] : NULL;
	if (result)
		return (CUresult)result;
	return sim_context_is_live(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static void push(struct sim_context *context)
{
	stack[depth++] = context;
	sim_context_set_current(context);
}

static void pop(void)
{
	depth--;
	sim_context_set_current(depth ? stack[depth - 1] : NULL);
}

/* Replace the top of the stack; NULL empties it. */
static void set_current(struct sim_context *context)
{
	if (depth)
		pop();
	if (context)
		push(context);
}

static CUresult device_of(CUdevice ordinal, struct sim_device **device)
{
	int result = sim_check_begun();

	*device = sim_device(ordinal);
	return result ? (CUresult)result : *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult do_cuDeviceGetCount(const cuDeviceGetCount_p *p)
{
	int result = sim_check_begun();

	if (result)
		return (CUresult)result;
	*p->count = sim_config()->n_devices;
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGet(const cuDeviceGet_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->ordinal, &device);

	if (!result)
		*p->device = p->ordinal;
	return result;
}

CUresult do_cuDeviceGetName(const cuDeviceGetName_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		snprintf(p->name, (size_t)p->len, "%s", sim_config()->device_name);
	return result;
}

static CUresult uuid_of(CUdevice ordinal, CUuuid *uuid)
{
	struct sim_device *device;
	CUresult result = device_of(ordinal, &device);

	if (result)
		return result;
	memcpy(uuid->bytes, "simulated device", sizeof(uuid->bytes));
	uuid->bytes[sizeof(uuid->bytes) - 1] = (char)(sim_config()->first_device + ordinal);
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetUuid(const cuDeviceGetUuid_p *p)
{
	return uuid_of(p->dev, p->uuid);
}

CUresult do_cuDeviceGetUuid_v2(const cuDeviceGetUuid_v2_p *p)
{
	return uuid_of(p->dev, p->uuid);
}

CUresult do_cuDeviceTotalMem_v2(const cuDeviceTotalMem_v2_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		*p->bytes = sim_config()->device_bytes;
	return result;
}

/* What is not in the table is 0: a feature that is not there. */
static int attribute_of(CUdevice_attribute attribute, int ordinal)
{
	switch (attribute) {
#define ATTRIBUTE(name, value)           \
	case CU_DEVICE_ATTRIBUTE_##name: \
		return value;
#include "test/simcuda/driver/attributes.def"
#undef ATTRIBUTE
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return FIRST_BUS + ordinal;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return sim_config()->n_processors;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return sim_config()->arch / 10;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return sim_config()->arch % 10;
	default:
		return 0;
	}
}

CUresult do_cuDeviceGetAttribute(const cuDeviceGetAttribute_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (result)
		return result;
	if (p->attrib <= 0 || p->attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*p->pi = attribute_of(p->attrib, p->dev);
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetPCIBusId(const cuDeviceGetPCIBusId_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		snprintf(p->pciBusId, (size_t)p->len, "0000:%02X:00.0", FIRST_BUS + p->dev);
	return result;
}

CUresult do_cuDeviceGetByPCIBusId(const cuDeviceGetByPCIBusId_p *p)
{
	unsigned domain, bus;

	if (sscanf(p->pciBusId, "%x:%x", &domain, &bus) != 2 || !sim_device((int)bus - FIRST_BUS))
		return CUDA_ERROR_INVALID_DEVICE;
	*p->dev = (int)bus - FIRST_BUS;
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceCanAccessPeer(const cuDeviceCanAccessPeer_p *p)
{
	if (!sim_device(p->dev) || !sim_device(p->peerDev))
		return CUDA_ERROR_INVALID_DEVICE;
	*p->canAccessPeer = p->dev != p->peerDev;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxEnablePeerAccess(const cuCtxEnablePeerAccess_p *p)
{
	return sim_context_is_live((struct sim_context *)p->peerContext)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult do_cuDeviceGetDefaultMemPool(const cuDeviceGetDefaultMemPool_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		*p->pool_out = (CUmemoryPool)device->default_pool;
	return result;
}

CUresult do_cuDeviceGetMemPool(const cuDeviceGetMemPool_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		*p->pool = (CUmemoryPool)device->current_pool;
	return result;
}

#if CUDA_VERSION >= 13000
/* Pools of the host's memory, and managed ones, there are none. */
static CUresult pool_at(const CUmemLocation *location, CUmemAllocationType type, bool is_default,
			CUmemoryPool *pool)
{
	struct sim_device *device;
	CUresult result;

	if (!location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = device_of(location->id, &device);
	if (!result)
		*pool = (CUmemoryPool)(is_default ? device->default_pool : device->current_pool);
	return result;
}

CUresult do_cuMemGetDefaultMemPool(const cuMemGetDefaultMemPool_p *p)
{
	return pool_at(p->location, p->type, true, p->pool_out);
}

CUresult do_cuMemGetMemPool(const cuMemGetMemPool_p *p)
{
	return pool_at(p->location, p->type, false, p->pool);
}
#endif

CUresult do_cuDeviceSetMemPool(const cuDeviceSetMemPool_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		device->current_pool = (struct sim_pool *)p->pool;
	return result;
}

CUresult do_cuDevicePrimaryCtxRetain(const cuDevicePrimaryCtxRetain_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	return result ? result
		      : (CUresult)sim_primary_retain(device, (struct sim_context **)p->pctx);
}

CUresult do_cuDevicePrimaryCtxRelease_v2(const cuDevicePrimaryCtxRelease_v2_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	return result ? result : (CUresult)sim_primary_release(device);
}

CUresult do_cuDevicePrimaryCtxReset_v2(const cuDevicePrimaryCtxReset_v2_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (result || !device->primary)
		return result;
	device->n_primary_users = 1;
	return (CUresult)sim_primary_release(device);
}

CUresult do_cuDevicePrimaryCtxGetState(const cuDevicePrimaryCtxGetState_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (result)
		return result;
	*p->active = device->primary != NULL;
	*p->flags = device->primary_flags;
	return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxSetFlags_v2(const cuDevicePrimaryCtxSetFlags_v2_p *p)
{
	struct sim_device *device;
	CUresult result = device_of(p->dev, &device);

	if (!result)
		device->primary_flags = p->flags;
	return result;
}

static CUresult create_context(CUcontext *handle, unsigned flags, CUdevice dev)
{
	struct sim_device *device;
	CUresult result = device_of(dev, &device);

	if (!result && depth == MAX_DEPTH)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		result = (CUresult)sim_context_create(device, flags, (struct sim_context **)handle);
	if (!result)
		push((struct sim_context *)*handle);
	return result;
}

CUresult do_cuCtxCreate_v2(const cuCtxCreate_v2_p *p)
{
	return create_context(p->pctx, p->flags, p->dev);
}

CUresult do_cuCtxCreate_v3(const cuCtxCreate_v3_p *p)
{
	return p->numParams ? CUDA_ERROR_NOT_SUPPORTED : create_context(p->pctx, p->flags, p->dev);
}

CUresult do_cuCtxCreate_v4(const cuCtxCreate_v4_p *p)
{
	return p->ctxCreateParams ? CUDA_ERROR_NOT_SUPPORTED
				  : create_context(p->pctx, p->flags, p->dev);
}

CUresult do_cuCtxDestroy_v2(const cuCtxDestroy_v2_p *p)
{
	struct sim_context *context = (struct sim_context *)p->ctx;

	if (!sim_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth && stack[depth - 1] == context)
		pop();
	return (CUresult)sim_context_destroy(context);
}

CUresult do_cuCtxPushCurrent_v2(const cuCtxPushCurrent_v2_p *p)
{
	if (!sim_context_is_live((struct sim_context *)p->ctx) || depth == MAX_DEPTH)
		return CUDA_ERROR_INVALID_CONTEXT;
	push((struct sim_context *)p->ctx);
	return CUDA_SUCCESS;
}

CUresult do_cuCtxPopCurrent_v2(const cuCtxPopCurrent_v2_p *p)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (p->pctx)
		*p->pctx = (CUcontext)stack[depth - 1];
	pop();
	return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCurrent(const cuCtxSetCurrent_p *p)
{
	int result = sim_check_begun();

	if (result)
		return (CUresult)result;
	if (p->ctx && !sim_context_is_live((struct sim_context *)p->ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	set_current((struct sim_context *)p->ctx);
	return CUDA_SUCCESS;
}

CUresult do_cuCtxGetCurrent(const cuCtxGetCurrent_p *p)
{
	int result = sim_check_begun();

	if (!result)
		*p->pctx = depth ? (CUcontext)stack[depth - 1] : NULL;
	return (CUresult)result;
}

CUresult do_cuCtxGetDevice(const cuCtxGetDevice_p *p)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (!result)
		*p->device = context->device->ordinal;
	return result;
}

CUresult do_cuCtxGetFlags(const cuCtxGetFlags_p *p)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (!result)
		*p->flags = context->flags;
	return result;
}

CUresult do_cuCtxGetId(const cuCtxGetId_p *p)
{
	struct sim_context *context = (struct sim_context *)p->ctx;

	if (!context && drv_context(&context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_context_is_live(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*p->ctxId = context->id;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxSynchronize(void)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	return result ? result : (CUresult)sim_context_synchronize(context);
}

CUresult do_cuCtxGetStreamPriorityRange(const cuCtxGetStreamPriorityRange_p *p)
{
	if (p->leastPriority)
		*p->leastPriority = LOWEST_PRIORITY;
	if (p->greatestPriority)
		*p->greatestPriority = HIGHEST_PRIORITY;
	return CUDA_SUCCESS;
}

static size_t limits[CU_LIMIT_MAX];

CUresult do_cuCtxSetLimit(const cuCtxSetLimit_p *p)
{
	if ((unsigned)p->limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	limits[p->limit] = p->value;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxGetLimit(const cuCtxGetLimit_p *p)
{
	if ((unsigned)p->limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*p->pvalue = limits[p->limit];
	return CUDA_SUCCESS;
}

CUresult do_cuThreadExchangeStreamCaptureMode(const cuThreadExchangeStreamCaptureMode_p *p)
{
	if ((unsigned)*p->mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	*p->mode =
		(CUstreamCaptureMode)sim_capture_exchange_mode((enum sim_capture_mode) * p->mode);
	return CUDA_SUCCESS;
}
