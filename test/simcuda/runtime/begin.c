/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The way to the driver, the device of a thread, and errors. */
#include "test/simcuda/runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/runtime/error.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_DEVICES = SIM_MAX_DEVICES };

struct rt_driver rt_driver;

static CUresult load_result;
static CUcontext primaries[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards primaries */
static unsigned generation = 1; /* counts resets, after which a thread's context is stale */
static _Thread_local int device;
static _Thread_local unsigned ready_generation; /* the device's context is current since that one */
static _Thread_local cudaError_t last_error;

int rt_call_exit(struct sim_call *call)
{
	int result = sim_call_exit(call);

	if (result)
		last_error = (cudaError_t)result;
	return result;
}

cudaError_t do_cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t do_cudaPeekAtLastError(void)
{
	return last_error;
}

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	const char *name;

	switch ((int)error) {
#define ERROR(code, name, text) \
	case code:              \
		return name;
#include "test/simcuda/runtime/errors.def"
#undef ERROR
	default:
		return !rt_load() && !rt_driver.cuGetErrorName((CUresult)error, &name)
			       ? name
			       : "cudaErrorUnknown";
	}
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	switch ((int)error) {
#define ERROR(code, name, text) \
	case code:              \
		return text;
#include "test/simcuda/runtime/errors.def"
#undef ERROR
	default:
		return !rt_load() && !rt_driver.cuGetErrorString((CUresult)error, &text)
			       ? text
			       : "unrecognized error code";
	}
}

int rt_version(void)
{
	return sim_config()->runtime_version ? sim_config()->runtime_version : CUDART_VERSION;
}

static void load(void)
{
	CUresult (*look_up)(const char *, void **, int, cuuint64_t,
			    CUdriverProcAddressQueryResult *) = NULL;
	void *library =
		sim_config()->driver == SIM_DRIVER_ABSENT ? NULL : dlopen("libcuda.so.1", RTLD_NOW);

	if (library)
		*(void **)&look_up = dlsym(library, "cuGetProcAddress_v2");
	if (!look_up) {
		load_result = (CUresult)cudaErrorInsufficientDriver;
		return;
	}
#define CALL(name, version)                     \
	load_result = load_result ? load_result \
				  : look_up(#name, (void **)&rt_driver.name, version, 0, NULL);
#include "driver_calls.h"
#undef CALL
	if (!load_result)
		load_result = rt_driver.cuInit(0);
}

CUresult rt_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return sim_is_forked() && !load_result ? CUDA_ERROR_NOT_INITIALIZED : load_result;
}

static CUresult retain_primary(int ordinal, CUcontext *context)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!primaries[ordinal])
		result = rt_driver.cuDevicePrimaryCtxRetain(&primaries[ordinal], ordinal);
	*context = primaries[ordinal];
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult rt_begin(void)
{
	CUresult result = rt_load();
	CUcontext context = NULL;

	if (result || ready_generation == generation)
		return result;
	/* What the program made current through the driver stays. */
	rt_driver.cuCtxGetCurrent(&context);
	if (!context || ready_generation) {
		result = retain_primary(device, &context);
		if (!result)
			result = rt_driver.cuCtxSetCurrent(context);
	}
	if (!result)
		ready_generation = generation;
	return result;
}

int rt_current_device(void)
{
	return device;
}

cudaError_t do_cudaSetDevice(const cudaSetDevice_p *p)
{
	int n = 0;
	CUcontext context;
	CUresult result = rt_load();

	if (!result)
		result = rt_driver.cuDeviceGetCount(&n);
	if (!result && (p->device < 0 || p->device >= n))
		return cudaErrorInvalidDevice;
	if (!result)
		result = retain_primary(p->device, &context);
	if (!result)
		result = rt_driver.cuCtxSetCurrent(context);
	if (result)
		return (cudaError_t)result;
	device = p->device;
	ready_generation = generation;
	return cudaSuccess;
}

cudaError_t do_cudaInitDevice(const cudaInitDevice_p *p)
{
	CUcontext context;
	CUresult result = rt_load();

	return (cudaError_t)(result ? result : retain_primary(p->device, &context));
}

cudaError_t do_cudaGetDevice(const cudaGetDevice_p *p)
{
	CUresult result = rt_load();

	if (!result)
		*p->device = device;
	return (cudaError_t)result;
}

cudaError_t do_cudaDeviceReset(void)
{
	CUresult result = rt_load();

	if (result)
		return (cudaError_t)result;
	pthread_mutex_lock(&lock);
	result = rt_driver.cuDevicePrimaryCtxReset(device);
	primaries[device] = NULL;
	generation++;
	pthread_mutex_unlock(&lock);
	return (cudaError_t)result;
}
