/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the files of the simulated libcudart share. As the real one it reaches the driver only
 * through libcuda.so.1 and cuGetProcAddress, so that whoever stands between sees its calls; unlike
 * the real one it wants no private tables.
 */
#ifndef SIMCUDA_RUNTIME_H
#define SIMCUDA_RUNTIME_H

#include <cuda.h>

#include "runtime_api.h"

/* As cudaProfiler.h has them, which PyPI's packages lack. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* The driver's functions that are called here. */
struct rt_driver {
#define CALL(name, version) __typeof__(name) *name;
#include "driver_calls.h"
#undef CALL
};

extern struct rt_driver rt_driver;

/* Load the driver, and make the context of the thread's device current. */
CUresult rt_begin(void);

/*
 * The version of this library, as cudaRuntimeGetVersion returns it: that of its headers, unless it
 * is set.
 */
int rt_version(void);

/* Load the driver alone. */
CUresult rt_load(void);

int rt_current_device(void);

/*
 * What a kernel's stub, cudaKernel_t or cudaFunction_t stands for; NULL where it is none of them.
 */
CUfunction rt_function(const void *function);

/* The name of the same, without a call of the driver. */
const char *rt_function_name(const void *function);

/* Where a __device__ variable lies on the current device, and how large it is. */
CUresult rt_variable(const void *symbol, CUdeviceptr *address, size_t *bytes);

#endif
