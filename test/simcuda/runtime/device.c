/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices and their properties, versions, and the driver's entry points. */
#include "test/simcuda/runtime/runtime.h"

#include <dlfcn.h>
#include <string.h>

#include "test/simcuda/engine/config.h"

cudaError_t do_cudaRuntimeGetVersion(const cudaRuntimeGetVersion_p *p)
{
	if (!p->runtimeVersion)
		return cudaErrorInvalidValue;
	*p->runtimeVersion = rt_version();
	return cudaSuccess;
}

/* Without a driver the version is 0, and nothing failed. */
cudaError_t do_cudaDriverGetVersion(const cudaDriverGetVersion_p *p)
{
	*p->driverVersion = 0;
	if (sim_config()->driver == SIM_DRIVER_ABSENT)
		return cudaSuccess;
	rt_load();
	return rt_driver.cuDriverGetVersion
		       ? (cudaError_t)rt_driver.cuDriverGetVersion(p->driverVersion)
		       : cudaSuccess;
}

cudaError_t do_cudaGetDeviceCount(const cudaGetDeviceCount_p *p)
{
	CUresult result = rt_load();

	return (cudaError_t)(result ? result : rt_driver.cuDeviceGetCount(p->count));
}

cudaError_t do_cudaDeviceGetAttribute(const cudaDeviceGetAttribute_p *p)
{
	CUresult result = rt_load();

	return (cudaError_t)(result ? result
				    : rt_driver.cuDeviceGetAttribute(
					      p->value, (CUdevice_attribute)p->attr, p->device));
}

cudaError_t do_cudaDeviceGetPCIBusId(const cudaDeviceGetPCIBusId_p *p)
{
	CUresult result = rt_load();

	return (cudaError_t)(result ? result
				    : rt_driver.cuDeviceGetPCIBusId(p->pciBusId, p->len,
								    p->device));
}

cudaError_t do_cudaDeviceGetByPCIBusId(const cudaDeviceGetByPCIBusId_p *p)
{
	CUresult result = rt_load();

	return (cudaError_t)(result ? result
				    : rt_driver.cuDeviceGetByPCIBusId(p->device, p->pciBusId));
}

static int attribute(CUdevice_attribute which, int device)
{
	int value = 0;

	rt_driver.cuDeviceGetAttribute(&value, which, device);
	return value;
}

#define ATTRIBUTE(name) attribute(CU_DEVICE_ATTRIBUTE_##name, device)

static void read_limits(struct cudaDeviceProp *prop, int device)
{
	prop->sharedMemPerBlock = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK);
	prop->regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK);
	prop->warpSize = ATTRIBUTE(WARP_SIZE);
	prop->memPitch = (size_t)ATTRIBUTE(MAX_PITCH);
	prop->maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK);
	prop->maxThreadsDim[0] = ATTRIBUTE(MAX_BLOCK_DIM_X);
	prop->maxThreadsDim[1] = ATTRIBUTE(MAX_BLOCK_DIM_Y);
	prop->maxThreadsDim[2] = ATTRIBUTE(MAX_BLOCK_DIM_Z);
	prop->maxGridSize[0] = ATTRIBUTE(MAX_GRID_DIM_X);
	prop->maxGridSize[1] = ATTRIBUTE(MAX_GRID_DIM_Y);
	prop->maxGridSize[2] = ATTRIBUTE(MAX_GRID_DIM_Z);
	prop->totalConstMem = (size_t)ATTRIBUTE(TOTAL_CONSTANT_MEMORY);
	prop->textureAlignment = (size_t)ATTRIBUTE(TEXTURE_ALIGNMENT);
	prop->maxThreadsPerMultiProcessor = ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR);
	prop->sharedMemPerMultiprocessor = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	prop->regsPerMultiprocessor = ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR);
	prop->sharedMemPerBlockOptin = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	prop->maxBlocksPerMultiProcessor = ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR);
	prop->reservedSharedMemPerBlock = (size_t)ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK);
}

static void read_features(struct cudaDeviceProp *prop, int device)
{
	prop->major = ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR);
	prop->minor = ATTRIBUTE(COMPUTE_CAPABILITY_MINOR);
	prop->multiProcessorCount = ATTRIBUTE(MULTIPROCESSOR_COUNT);
	prop->canMapHostMemory = ATTRIBUTE(CAN_MAP_HOST_MEMORY);
	prop->concurrentKernels = ATTRIBUTE(CONCURRENT_KERNELS);
	prop->pciBusID = ATTRIBUTE(PCI_BUS_ID);
	prop->asyncEngineCount = ATTRIBUTE(ASYNC_ENGINE_COUNT);
	prop->unifiedAddressing = ATTRIBUTE(UNIFIED_ADDRESSING);
	prop->memoryBusWidth = ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH);
	prop->l2CacheSize = ATTRIBUTE(L2_CACHE_SIZE);
	prop->streamPrioritiesSupported = ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED);
	prop->globalL1CacheSupported = ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED);
	prop->localL1CacheSupported = ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED);
	prop->managedMemory = ATTRIBUTE(MANAGED_MEMORY);
	prop->concurrentManagedAccess = ATTRIBUTE(CONCURRENT_MANAGED_ACCESS);
	prop->cooperativeLaunch = ATTRIBUTE(COOPERATIVE_LAUNCH);
	prop->hostRegisterSupported = ATTRIBUTE(HOST_REGISTER_SUPPORTED);
	prop->memoryPoolsSupported = ATTRIBUTE(MEMORY_POOLS_SUPPORTED);
#if CUDART_VERSION < 13000
	prop->clockRate = ATTRIBUTE(CLOCK_RATE);
	prop->memoryClockRate = ATTRIBUTE(MEMORY_CLOCK_RATE);
	prop->deviceOverlap = prop->asyncEngineCount > 0;
	prop->computeMode = cudaComputeModeDefault;
#endif
}
#undef ATTRIBUTE

static cudaError_t properties_of(int device, struct cudaDeviceProp *prop)
{
	CUresult result = rt_load();

	if (result)
		return (cudaError_t)result;
	memset(prop, 0, sizeof(*prop));
	result = rt_driver.cuDeviceGetName(prop->name, sizeof(prop->name), device);
	if (result)
		return (cudaError_t)result;
	rt_driver.cuDeviceTotalMem(&prop->totalGlobalMem, device);
	rt_driver.cuDeviceGetUuid((CUuuid *)&prop->uuid, device);
	read_limits(prop, device);
	read_features(prop, device);
	return cudaSuccess;
}

/* In 12 the plain name has the struct of 11 still, which its headers don't have. */
#if CUDART_VERSION < 13000
cudaError_t do_cudaGetDeviceProperties_v2(const cudaGetDeviceProperties_v2_p *p)
{
	return properties_of(p->device, p->prop);
}
#else
cudaError_t do_cudaGetDeviceProperties(const cudaGetDeviceProperties_p *p)
{
	return properties_of(p->device, p->prop);
}
#endif

cudaError_t do_cudaDeviceEnablePeerAccess(const cudaDeviceEnablePeerAccess_p *p)
{
	int can = 0;
	CUresult result = rt_begin();

	if (!result)
		result = rt_driver.cuDeviceCanAccessPeer(&can, rt_current_device(), p->peerDevice);
	return result ? (cudaError_t)result : can ? cudaSuccess : cudaErrorPeerAccessUnsupported;
}

cudaError_t do_cudaSetDeviceFlags(const cudaSetDeviceFlags_p *p)
{
	CUresult result = rt_load();

	return (cudaError_t)(result ? result
				    : rt_driver.cuDevicePrimaryCtxSetFlags(rt_current_device(),
									   p->flags));
}

cudaError_t do_cudaGetDeviceFlags(const cudaGetDeviceFlags_p *p)
{
	CUresult result = rt_load();
	int is_active;

	return (cudaError_t)(result ? result
				    : rt_driver.cuDevicePrimaryCtxGetState(rt_current_device(),
									   p->flags, &is_active));
}

static cudaError_t entry_point(const char *symbol, void **found, unsigned version,
			       unsigned long long flags,
			       enum cudaDriverEntryPointQueryResult *status)
{
	CUresult (*look_up)(const char *, void **, int, cuuint64_t,
			    CUdriverProcAddressQueryResult *) = NULL;
	CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult result = rt_load();
	void *library = result ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library)
		*(void **)&look_up = dlsym(library, "cuGetProcAddress_v2");
	if (look_up)
		result = look_up(symbol, found, (int)version, flags, &query);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)query;
	/* The status reports what is not there. */
	return result == CUDA_ERROR_NOT_FOUND && status ? cudaSuccess : (cudaError_t)result;
}

#ifdef HAS_cudaGetDriverEntryPointByVersion
cudaError_t do_cudaGetDriverEntryPointByVersion(const cudaGetDriverEntryPointByVersion_p *p)
{
	return entry_point(p->symbol, p->funcPtr, p->cudaVersion, p->flags, p->driverStatus);
}
#endif

cudaError_t do_cudaGetDriverEntryPoint(const cudaGetDriverEntryPoint_p *p)
{
	return entry_point(p->symbol, p->funcPtr, (unsigned)rt_version(), p->flags,
			   p->driverStatus);
}
