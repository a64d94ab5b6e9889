/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Modules, libraries and their kernels. Code is never read: a kernel is its name, and any name can
 * be had.
 */
#include "test/simcuda/driver/driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/memory/memory.h"
#include "test/simcuda/engine/memory/others.h"

enum {
	MODULE_MAGIC = 0x4d6f646c,
	THREADS_PER_PROCESSOR = 2048,
	BLOCKS_PER_PROCESSOR = 32,
	SHARED_PER_PROCESSOR = 233472,
	MAX_THREADS_PER_BLOCK = 1024,
	SHARED_PER_BLOCK = 49152,
	/* The resources that every kernel reports. */
	REGISTERS = 32,
};

struct drv_module {
	uint32_t magic, id;
	struct sim_device *device; /* which has its code; NULL: none */
	uint64_t offset, bytes;
	pthread_mutex_t lock; /* guards the functions */
	struct sim_function **functions;
	size_t n_functions;
};

static void take_memory(struct drv_module *module)
{
	size_t bytes = (sim_config()->module_bytes + SIM_ALIGNMENT - 1) & -(size_t)SIM_ALIGNMENT;
	struct sim_context *context;

	if (!bytes || drv_context(&context))
		return;
	sim_lock();
	if (sim_extents_take(&context->device->free_memory, bytes, SIM_ALIGNMENT,
			     &module->offset)) {
		module->device = context->device;
		module->bytes = bytes;
		sim_memory_left(context->device);
	}
	sim_unlock();
	if (sim_log_is_on())
		sim_log("{\"kind\":\"module\",\"module\":%u,\"device\":%d,\"bytes\":%lu}",
			module->id, context->device->ordinal, module->bytes);
}

static void give_memory(struct drv_module *module)
{
	if (!module->device)
		return;
	sim_lock();
	sim_extents_give(&module->device->free_memory, module->offset, module->bytes);
	sim_memory_left(module->device);
	sim_unlock();
	module->device = NULL;
}

static struct drv_module *make_module(const void *image)
{
	static _Atomic uint32_t last_id;
	struct drv_module *module = calloc(1, sizeof(*module));
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_context *context;

	module->magic = MODULE_MAGIC;
	module->id = ++last_id;
	pthread_mutex_init(&module->lock, NULL);
	take_memory(module);
	if (tracer && tracer->resource && !drv_context(&context))
		tracer->resource(&(struct sim_resource_event){.what = SIM_MODULE_LOADED,
							      .context = context,
							      .module = image,
							      .module_id = module->id});
	return module;
}

static CUresult unload(void *handle)
{
	struct drv_module *module = handle;

	if (!module || module->magic != MODULE_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	module->magic = 0;
	give_memory(module);
	for (size_t i = 0; i < module->n_functions; i++)
		module->functions[i]->magic = 0;
	free(module->functions);
	return CUDA_SUCCESS;
}

static struct sim_function *make_function(struct drv_module *module, const char *name)
{
	struct sim_function *function = calloc(1, sizeof(*function));

	function->magic = SIM_FUNCTION_MAGIC;
	function->name = strdup(name);
	function->module = module;
	function->max_dynamic_shared_bytes = SHARED_PER_BLOCK;
	function->carveout = -1;
	module->functions =
		realloc(module->functions, (module->n_functions + 1) * sizeof(*module->functions));
	module->functions[module->n_functions++] = function;
	return function;
}

static CUresult find_function(void *handle, const char *name, struct sim_function **found)
{
	struct drv_module *module = handle;

	if (!module || module->magic != MODULE_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	*found = NULL;
	pthread_mutex_lock(&module->lock);
	for (size_t i = 0; i < module->n_functions && !*found; i++)
		if (!strcmp(module->functions[i]->name, name))
			*found = module->functions[i];
	if (!*found)
		*found = make_function(module, name);
	pthread_mutex_unlock(&module->lock);
	return CUDA_SUCCESS;
}

struct sim_function *drv_function_of(CUfunction handle)
{
	struct sim_function *function = (struct sim_function *)handle;

	return function && function->magic == SIM_FUNCTION_MAGIC ? function : NULL;
}

static CUresult load(void *handle, const void *image)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (!result && !image)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*(struct drv_module **)handle = make_module(image);
	return result;
}

CUresult do_cuModuleLoadData(const cuModuleLoadData_p *p)
{
	return load(p->module, p->image);
}

CUresult do_cuModuleLoadDataEx(const cuModuleLoadDataEx_p *p)
{
	return load(p->module, p->image);
}

CUresult do_cuModuleLoadFatBinary(const cuModuleLoadFatBinary_p *p)
{
	return load(p->module, p->fatCubin);
}

CUresult do_cuModuleLoad(const cuModuleLoad_p *p)
{
	return access(p->fname, R_OK) ? CUDA_ERROR_FILE_NOT_FOUND : load(p->module, p->fname);
}

CUresult do_cuModuleUnload(const cuModuleUnload_p *p)
{
	return unload(p->hmod);
}

CUresult do_cuModuleGetFunction(const cuModuleGetFunction_p *p)
{
	return find_function(p->hmod, p->name, (struct sim_function **)p->hfunc);
}

/* A library belongs to no context. */
CUresult do_cuLibraryLoadData(const cuLibraryLoadData_p *p)
{
	int result = sim_check_begun();

	if (!result)
		*(struct drv_module **)p->library = make_module(p->code);
	return (CUresult)result;
}

CUresult do_cuLibraryLoadFromFile(const cuLibraryLoadFromFile_p *p)
{
	if (access(p->fileName, R_OK))
		return CUDA_ERROR_FILE_NOT_FOUND;
	*(struct drv_module **)p->library = make_module(p->fileName);
	return CUDA_SUCCESS;
}

CUresult do_cuLibraryUnload(const cuLibraryUnload_p *p)
{
	return unload(p->library);
}

CUresult do_cuLibraryGetKernel(const cuLibraryGetKernel_p *p)
{
	return find_function(p->library, p->name, (struct sim_function **)p->pKernel);
}

CUresult do_cuLibraryGetModule(const cuLibraryGetModule_p *p)
{
	*p->pMod = (CUmodule)p->library;
	return CUDA_SUCCESS;
}

CUresult do_cuKernelGetFunction(const cuKernelGetFunction_p *p)
{
	if (!drv_function_of((CUfunction)p->kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	*p->pFunc = (CUfunction)p->kernel;
	return CUDA_SUCCESS;
}

CUresult do_cuKernelGetName(const cuKernelGetName_p *p)
{
	const struct sim_function *function = drv_function_of((CUfunction)p->hfunc);

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*p->name = function->name;
	return CUDA_SUCCESS;
}

CUresult do_cuFuncGetName(const cuFuncGetName_p *p)
{
	const struct sim_function *function = drv_function_of(p->hfunc);

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*p->name = function->name;
	return CUDA_SUCCESS;
}

CUresult do_cuFuncGetModule(const cuFuncGetModule_p *p)
{
	const struct sim_function *function = drv_function_of(p->hfunc);

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*p->hmod = (CUmodule)function->module;
	return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute,
			      const struct sim_function *function)
{
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = MAX_THREADS_PER_BLOCK;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = REGISTERS;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = sim_config()->arch;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = function->max_dynamic_shared_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = function->carveout;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUresult do_cuFuncGetAttribute(const cuFuncGetAttribute_p *p)
{
	return get_attribute(p->pi, p->attrib, drv_function_of(p->hfunc));
}

CUresult do_cuKernelGetAttribute(const cuKernelGetAttribute_p *p)
{
	return get_attribute(p->pi, p->attrib, drv_function_of((CUfunction)p->kernel));
}

static CUresult set_attribute(struct sim_function *function, CUfunction_attribute attribute,
			      int value)
{
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		function->max_dynamic_shared_bytes = value;
	else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		function->carveout = value;
	return CUDA_SUCCESS;
}

CUresult do_cuFuncSetAttribute(const cuFuncSetAttribute_p *p)
{
	return set_attribute(drv_function_of(p->hfunc), p->attrib, p->value);
}

CUresult do_cuKernelSetAttribute(const cuKernelSetAttribute_p *p)
{
	return set_attribute(drv_function_of((CUfunction)p->kernel), p->attrib, p->val);
}

CUresult do_cuFuncSetCacheConfig(const cuFuncSetCacheConfig_p *p)
{
	return drv_function_of(p->hfunc) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* By threads, blocks, registers and shared memory, as the published occupancy rules have it. */
static CUresult occupancy(int *n_blocks, CUfunction function, int threads, size_t shared_bytes)
{
	int registers = REGISTERS * threads, most = BLOCKS_PER_PROCESSOR;

	if (!drv_function_of(function))
		return CUDA_ERROR_INVALID_HANDLE;
	if (threads <= 0 || threads > MAX_THREADS_PER_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	most = smaller(most, THREADS_PER_PROCESSOR / threads);
	most = smaller(most, 65536 / registers);
	*n_blocks = shared_bytes ? smaller(most, (int)(SHARED_PER_PROCESSOR / shared_bytes)) : most;
	return CUDA_SUCCESS;
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(
	const cuOccupancyMaxActiveBlocksPerMultiprocessor_p *p)
{
	return occupancy(p->numBlocks, p->func, p->blockSize, p->dynamicSMemSize);
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	const cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_p *p)
{
	return occupancy(p->numBlocks, p->func, p->blockSize, p->dynamicSMemSize);
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool is_launchable(const CUlaunchConfig *c)
{
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;

	return c->gridDimX && c->gridDimY && c->gridDimZ && threads &&
	       threads <= MAX_THREADS_PER_BLOCK;
}

static void read_attributes(struct sim_kernel_work *kernel, const CUlaunchConfig *config)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			kernel->is_cooperative = attribute->value.cooperative;
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			memcpy(kernel->cluster, &attribute->value.clusterDim,
			       sizeof(kernel->cluster));
	}
}

CUresult drv_kernel_work(struct sim_work *work, CUfunction handle, const CUlaunchConfig *c)
{
	const struct sim_function *function = drv_function_of(handle);

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!is_launchable(c) || c->sharedMemBytes > (unsigned)function->max_dynamic_shared_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*work = (struct sim_work){.kind = SIM_KERNEL,
				  .duration_ns = sim_kernel_duration(function->name)};
	work->kernel = (struct sim_kernel_work){
		.name = function->name,
		.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
		.block = {c->blockDimX, c->blockDimY, c->blockDimZ},
		.dynamic_shared_bytes = c->sharedMemBytes,
		.registers = REGISTERS,
		.gather = sim_kernel_gather(),
	};
	read_attributes(&work->kernel, c);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const CUlaunchConfig *config)
{
	struct sim_work work;
	CUresult result = drv_kernel_work(&work, function, config);

	return result ? result : drv_submit(config->hStream, &work);
}

CUresult do_cuLaunchKernel(const cuLaunchKernel_p *p)
{
	CUlaunchConfig config = {
		p->gridDimX,  p->gridDimY,	 p->gridDimZ, p->blockDimX, p->blockDimY,
		p->blockDimZ, p->sharedMemBytes, p->hStream,  NULL,	    0};

	return launch(p->f, &config);
}

CUresult do_cuLaunchKernelEx(const cuLaunchKernelEx_p *p)
{
	return launch(p->f, p->config);
}

CUresult do_cuLaunchCooperativeKernel(const cuLaunchCooperativeKernel_p *p)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
				       .value.cooperative = 1};
	CUlaunchConfig config = {
		p->gridDimX,  p->gridDimY,	 p->gridDimZ, p->blockDimX, p->blockDimY,
		p->blockDimZ, p->sharedMemBytes, p->hStream,  &attribute,   1};

	return launch(p->f, &config);
}

CUresult drv_kernel_node_work(struct sim_work *work, const CUDA_KERNEL_NODE_PARAMS *n)
{
	CUlaunchConfig config = {
		n->gridDimX,  n->gridDimY,	 n->gridDimZ, n->blockDimX, n->blockDimY,
		n->blockDimZ, n->sharedMemBytes, NULL,	      NULL,	    0};

	return drv_kernel_work(work, n->func ? n->func : (CUfunction)n->kern, &config);
}
