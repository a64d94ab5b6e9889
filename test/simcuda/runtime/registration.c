/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the code that nvcc makes calls by itself: it registers fat binaries, kernels and variables
 * before main, and launches through a call configuration. None of these names is in a public
 * header; cupti_runtime_cbid.h has their ids.
 */
#include "test/simcuda/runtime/runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/function.h"
#include "test/simcuda/runtime/error.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	MAX_CONFIGURATIONS = 16,
	/* Of cupti_runtime_cbid.h since 13.0. */
	CBID_LAUNCH = 505,
	CBID_LAUNCH_PTSZ = 506,
};

struct binary {
	const void *image;
	CUlibrary library;
};

/* A kernel's stub or a variable's shadow, by its address. */
struct entry {
	const void *key;
	const char *name;
	struct binary *binary;
	CUkernel kernel;
	size_t bytes; /* of a variable; 0: a kernel */
	CUdeviceptr addresses[SIM_MAX_DEVICES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the entries */
static struct entry **entries; /* open addressing; the size is a power of two */
static size_t n_entries, n_slots;

static size_t slot_of(const void *key)
{
	size_t i = ((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 20;

	while (entries[i & (n_slots - 1)] && entries[i & (n_slots - 1)]->key != key)
		i++;
	return i & (n_slots - 1);
}

static void grow(void)
{
	struct entry **old = entries;
	size_t n_old = n_slots;

	n_slots = n_slots ? 2 * n_slots : 1024;
	entries = calloc(n_slots, sizeof(*entries));
	for (size_t i = 0; i < n_old; i++)
		if (old[i])
			entries[slot_of(old[i]->key)] = old[i];
	free(old);
}

static void insert(const void *key, const char *name, struct binary *binary, size_t bytes)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	*entry = (struct entry){.key = key, .name = name, .binary = binary, .bytes = bytes};
	pthread_mutex_lock(&lock);
	if (2 * n_entries >= n_slots)
		grow();
	size_t slot = slot_of(key);
	if (!entries[slot])
		n_entries++;
	entries[slot] = entry;
	pthread_mutex_unlock(&lock);
}

static struct entry *find(const void *key)
{
	struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = n_slots ? entries[slot_of(key)] : NULL;
	pthread_mutex_unlock(&lock);
	return entry;
}

static CUresult kernel_of(struct entry *entry)
{
	CUresult result = CUDA_SUCCESS;

	if (entry->kernel)
		return CUDA_SUCCESS;
	if (!entry->binary->library)
		result = rt_driver.cuLibraryLoadData(&entry->binary->library, entry->binary->image,
						     NULL, NULL, 0, NULL, NULL, 0);
	return result ? result
		      : rt_driver.cuLibraryGetKernel(&entry->kernel, entry->binary->library,
						     entry->name);
}

CUfunction rt_function(const void *function)
{
	struct entry *entry = find(function);

	if (!entry)
		return (CUfunction)function;
	return entry->bytes || kernel_of(entry) ? NULL : (CUfunction)entry->kernel;
}

const char *rt_function_name(const void *function)
{
	struct entry *entry = find(function);

	return entry ? entry->name : sim_function_name(function);
}

CUresult rt_variable(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
	struct entry *entry = find(symbol);
	CUresult result = CUDA_SUCCESS;

	if (!entry || !entry->bytes)
		return (CUresult)cudaErrorInvalidSymbol;
	CUdeviceptr *known = &entry->addresses[rt_current_device()];
	if (!*known)
		result = rt_driver.cuMemAlloc(known, entry->bytes);
	*address = *known;
	if (bytes)
		*bytes = entry->bytes;
	return result;
}

/* ---- what nvcc's code calls ------------------------------------------------------------------ */

EXPORT void **__cudaRegisterFatBinary(void *image)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	binary->image = image;
	return (void **)binary;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
}

EXPORT char __cudaInitModule(void **handle)
{
	return 1;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
				   const char *name, int thread_limit, void *tid, void *bid,
				   void *block, void *grid, int *warp_size)
{
	insert(stub, name, (struct binary *)handle, 0);
}

EXPORT void __cudaRegisterVar(void **handle, char *shadow, char *address, const char *name,
			      int is_external, size_t bytes, int is_constant, int is_global)
{
	insert(shadow, name, (struct binary *)handle, bytes ? bytes : 1);
}

EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *shadow, size_t bytes)
{
	insert(shadow, name, (struct binary *)handle, bytes ? bytes : 1);
}

/*
 * The program reads a managed variable through a pointer: host memory that the device can access.
 */
EXPORT void __cudaRegisterManagedVar(void **handle, void **shadow, char *address, const char *name,
				     int is_external, size_t bytes, int is_constant, int is_global)
{
	*shadow = calloc(1, bytes);
}

struct configuration {
	dim3 grid, block;
	size_t shared_bytes;
	void *stream;
};

static _Thread_local struct configuration configurations[MAX_CONFIGURATIONS];
static _Thread_local int n_configurations;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
					    void *stream)
{
	if (n_configurations == MAX_CONFIGURATIONS)
		return 1;
	configurations[n_configurations++] =
		(struct configuration){grid, block, shared_bytes, stream};
	return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
					      void *stream)
{
	const struct configuration *top;

	if (!n_configurations)
		return cudaErrorMissingConfiguration;
	top = &configurations[--n_configurations];
	*grid = top->grid;
	*block = top->block;
	*shared_bytes = top->shared_bytes;
	*(void **)stream = top->stream;
	return cudaSuccess;
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
	struct entry *entry = find(stub);
	CUresult result = rt_begin();

	if (!entry || entry->bytes)
		return cudaErrorInvalidDeviceFunction;
	if (!result)
		result = kernel_of(entry);
	*kernel = (cudaKernel_t)entry->kernel;
	return (cudaError_t)result;
}

/* ---- launches -------------------------------------------------------------------------------- */

static CUresult launch(CUfunction f, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
		       CUstream stream)
{
	CUresult result = rt_begin();

	if (!result && !f)
		return (CUresult)cudaErrorInvalidDeviceFunction;
	if (result)
		return result;
	return rt_driver.cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
					(unsigned)shared_bytes, stream, arguments, NULL);
}

static cudaError_t launch_compiled(struct sim_api *api, bool is_per_thread,
				   cudaLaunchKernel_v7000_params *p)
{
	struct sim_call call = {.api = api,
				.params = p,
				.is_per_thread = is_per_thread,
				.symbol = sim_function_name(p->func)};

	if (sim_call_enter(&call))
		call.result = (int)launch((CUfunction)p->func, p->gridDim, p->blockDim, p->args,
					  p->sharedMem, p->stream);
	return (cudaError_t)rt_call_exit(&call);
}

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
				      size_t shared_bytes, cudaStream_t stream)
{
	static struct sim_api api = {
		.name = "__cudaLaunchKernel", .cbid = CBID_LAUNCH, .domain = SIM_DOMAIN_RUNTIME};
	cudaLaunchKernel_v7000_params p = {kernel, grid, block, arguments, shared_bytes, stream};

	return launch_compiled(&api, false, &p);
}

EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
					   void **arguments, size_t shared_bytes,
					   cudaStream_t stream)
{
	static struct sim_api api = {.name = "__cudaLaunchKernel_ptsz",
				     .cbid = CBID_LAUNCH_PTSZ,
				     .domain = SIM_DOMAIN_RUNTIME};
	cudaLaunchKernel_v7000_params p = {kernel, grid, block, arguments, shared_bytes, stream};

	return launch_compiled(&api, true, &p);
}

cudaError_t do_cudaLaunchKernel(const cudaLaunchKernel_p *p)
{
	return (cudaError_t)launch(rt_function(p->func), p->gridDim, p->blockDim, p->args,
				   p->sharedMem, p->stream);
}

cudaError_t do_cudaLaunchKernelExC(const cudaLaunchKernelExC_p *p)
{
	const cudaLaunchConfig_t *c = p->config;
	CUlaunchConfig config = {c->gridDim.x,
				 c->gridDim.y,
				 c->gridDim.z,
				 c->blockDim.x,
				 c->blockDim.y,
				 c->blockDim.z,
				 (unsigned)c->dynamicSmemBytes,
				 c->stream,
				 (CUlaunchAttribute *)c->attrs,
				 c->numAttrs};
	CUfunction function = rt_function(p->func);
	CUresult result = rt_begin();

	if (!function)
		return cudaErrorInvalidDeviceFunction;
	return (cudaError_t)(result ? result
				    : rt_driver.cuLaunchKernelEx(&config, function, p->args, NULL));
}

cudaError_t do_cudaLaunchCooperativeKernel(const cudaLaunchCooperativeKernel_p *p)
{
	CUfunction function = rt_function(p->func);
	CUresult result = rt_begin();

	if (!function)
		return cudaErrorInvalidDeviceFunction;
	return (cudaError_t)(result ? result
				    : rt_driver.cuLaunchCooperativeKernel(
					      function, p->gridDim.x, p->gridDim.y, p->gridDim.z,
					      p->blockDim.x, p->blockDim.y, p->blockDim.z,
					      (unsigned)p->sharedMem, p->stream, p->args));
}

cudaError_t do_cudaFuncGetAttributes(const cudaFuncGetAttributes_p *p)
{
	CUfunction f = rt_function(p->func);
	CUresult result = rt_begin();

	if (!f)
		return cudaErrorInvalidDeviceFunction;
	memset(p->attr, 0, sizeof(*p->attr));
#define READ(field, attribute)                                         \
	if (!result)                                                   \
		result = rt_driver.cuFuncGetAttribute(&p->attr->field, \
						      CU_FUNC_ATTRIBUTE_##attribute, f);
	READ(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
	READ(numRegs, NUM_REGS)
	READ(ptxVersion, PTX_VERSION)
	READ(binaryVersion, BINARY_VERSION)
	READ(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)
	READ(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT)
#undef READ
	return (cudaError_t)result;
}

cudaError_t do_cudaGetFuncBySymbol(const cudaGetFuncBySymbol_p *p)
{
	CUresult result = rt_begin();

	*p->functionPtr = result ? NULL : rt_function(p->symbolPtr);
	return *p->functionPtr ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t do_cudaGetKernel(const cudaGetKernel_p *p)
{
	return __cudaGetKernel(p->kernelPtr, p->entryFuncAddr);
}
