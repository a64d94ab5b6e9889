/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory of another process. Processes don't meet here: what is opened is memory of the host that
 * nobody else has, of the size that the handle names.
 */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/memory/memory.h"

#include <string.h>
#include <unistd.h>

#include "test/simcuda/engine/log/log.h"

struct ipc_handle {
	uint64_t bytes;
	int pid;
};

_Static_assert(sizeof(struct ipc_handle) <= CU_IPC_HANDLE_SIZE, "it travels in the public handle");

CUresult do_cuIpcGetMemHandle(const cuIpcGetMemHandle_p *p)
{
	struct ipc_handle handle = {.pid = getpid()};
	struct sim_range range;

	if (!sim_memory_lookup(p->dptr, &range) || range.base != p->dptr ||
	    range.kind != SIM_MEMORY_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	handle.bytes = range.bytes;
	memset(p->pHandle, 0, sizeof(*p->pHandle));
	memcpy(p->pHandle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult do_cuIpcOpenMemHandle_v2(const cuIpcOpenMemHandle_v2_p *p)
{
	struct ipc_handle handle;
	struct sim_context *context;
	uint64_t address;
	CUresult result = drv_context(&context);

	memcpy(&handle, &p->handle, sizeof(handle));
	/* As the real one: a process can't open what it exported. */
	if (!result && (!handle.bytes || handle.pid == getpid()))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = (CUresult)sim_memory_open_import(context->device, context->id,
							  handle.bytes, &address);
	if (!result)
		*p->pdptr = address;
	return result;
}

CUresult do_cuIpcCloseMemHandle(const cuIpcCloseMemHandle_p *p)
{
	return (CUresult)sim_memory_close_import(p->dptr);
}
