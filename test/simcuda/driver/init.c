/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* cuInit with the injection of tools, versions, errors by name, and the look-up of entry points. */
#include "test/simcuda/driver/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/log.h"

_Static_assert(SIM_INVALID_VALUE == (int)CUDA_ERROR_INVALID_VALUE &&
		       SIM_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY &&
		       SIM_INVALID_HANDLE == (int)CUDA_ERROR_INVALID_HANDLE &&
		       SIM_NOT_READY == (int)CUDA_ERROR_NOT_READY &&
		       SIM_ILLEGAL_ADDRESS == (int)CUDA_ERROR_ILLEGAL_ADDRESS &&
		       SIM_NOT_SUPPORTED == (int)CUDA_ERROR_NOT_SUPPORTED &&
		       SIM_CAPTURE_UNSUPPORTED == (int)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		       SIM_CAPTURE_WRONG_THREAD == (int)CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	       "result.h has the numbers of cuda.h");

/* Let the tool that CUDA_INJECTION64_PATH names look on from before the first context. */
static void inject_tool(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *tool = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*initialize)(void) = NULL;

	if (tool)
		*(void **)&initialize = dlsym(tool, "InitializeInjection");
	if (path && *path && sim_log_is_on())
		sim_log("{\"kind\":\"injection\",\"path\":%s,\"found\":%d}", sim_log_quoted(path),
			initialize != NULL);
	if (initialize)
		initialize();
}

CUresult do_cuInit(const cuInit_p *p)
{
	static atomic_flag is_injected = ATOMIC_FLAG_INIT;

	if (p->Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_config()->driver == SIM_DRIVER_STUB)
		return CUDA_ERROR_STUB_LIBRARY;
	/* The tool may call cuInit itself: not a pthread_once. */
	if (!sim_is_forked() && !atomic_flag_test_and_set(&is_injected))
		inject_tool();
	return (CUresult)sim_begin();
}

CUresult do_cuDriverGetVersion(const cuDriverGetVersion_p *p)
{
	if (!p->driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*p->driverVersion = sim_config()->driver_version;
	return CUDA_SUCCESS;
}

static const struct error {
	CUresult code;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text},
#include "test/simcuda/driver/errors.def"
#undef ERROR
};

static const struct error *find_error(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

CUresult do_cuGetErrorName(const cuGetErrorName_p *p)
{
	const struct error *error = find_error(p->error);

	*p->pStr = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGetErrorString(const cuGetErrorString_p *p)
{
	const struct error *error = find_error(p->error);

	*p->pStr = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void *find_symbol(const char *name)
{
	unsigned low = 0, high = sim_n_symbols;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = strcmp(name, sim_symbols[middle].name);

		if (order == 0)
			return sim_symbols[middle].address;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* The first form of a function; sim_n_forms: none. */
static unsigned first_form(const char *name)
{
	unsigned low = 0, high = sim_n_forms;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (strcmp(sim_forms[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sim_n_forms && !strcmp(sim_forms[low].name, name) ? low : sim_n_forms;
}

/* The newest form of a function that the version has; NULL: all are newer. */
static const char *find_form(const char *name, int version)
{
	unsigned i = first_form(name);
	const char *symbol = i < sim_n_forms ? NULL : name;

	for (;
	     i < sim_n_forms && !strcmp(sim_forms[i].name, name) && sim_forms[i].version <= version;
	     i++)
		symbol = sim_forms[i].symbol;
	return symbol;
}

static void *find_with(const char *symbol, const char *suffix)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", symbol, suffix);
	return find_symbol(full);
}

static CUresult look_up(const char *name, void **found, int version, cuuint64_t flags,
			CUdriverProcAddressQueryResult *status)
{
	bool is_per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const char *symbol;

	if (!name || !found)
		return CUDA_ERROR_INVALID_VALUE;
	*found = NULL;
	symbol = find_form(name, version);
	if (symbol && is_per_thread)
		*found = find_with(symbol, "_ptsz");
	if (symbol && is_per_thread && !*found)
		*found = find_with(symbol, "_ptds");
	if (symbol && !*found)
		*found = find_symbol(symbol);
	if (status)
		*status = *found   ? CU_GET_PROC_ADDRESS_SUCCESS
			  : symbol ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
				   : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult do_cuGetProcAddress_v2(const cuGetProcAddress_v2_p *p)
{
	return look_up(p->symbol, p->pfn, p->cudaVersion, p->flags, p->symbolStatus);
}

CUresult do_cuGetProcAddress(const cuGetProcAddress_p *p)
{
	return look_up(p->symbol, p->pfn, p->cudaVersion, p->flags, NULL);
}

CUresult do_cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult do_cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
