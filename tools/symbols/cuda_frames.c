/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/cuda_frames.h"

#include <string.h>

#include "agent/wire/channel.h"

#define CUDA_FRAMES_MAX 64 /* innermost frames in CUDA's libraries and CUPTI */

/* Returns whether the frame is CUDA's, or the agent's wrapper of a driver function. */
static bool is_of_cuda(const struct recorded_process *process, uint32_t address)
{
	static const char *const names[] = {"/libcuda.so", "/libcudart", "/libtorshagent.so"};
	const struct recorded_module *module = torsh_recording_module(process, address);
	const char *base = module && module->path ? strrchr(module->path, '/') : NULL;

	for (size_t i = 0; base && i < sizeof(names) / sizeof(*names); i++) {
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

uint32_t torsh_cuda_frames_shown(const struct recorded_process *process, uint32_t stack)
{
	uint32_t shown = stack;
	bool is_inside = false;

	for (int i = 0; i < CUDA_FRAMES_MAX && stack && stack < process->tables->n_stacks; i++) {
		bool is_cuda = is_of_cuda(process, process->tables->stacks[stack].address);

		if (is_inside && !is_cuda)
			break;
		if (is_cuda)
			shown = stack;
		is_inside = is_inside || is_cuda;
		stack = process->tables->stacks[stack].parent;
	}
	return shown;
}

/* Returns the address of the innermost Python line from `node` outwards, or UINT32_MAX. */
static uint32_t find_python(const struct recorded_process *process, uint32_t stack)
{
	for (; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		uint32_t address = process->tables->stacks[stack].address;

		if (address < process->tables->n_addresses &&
		    process->tables->addresses[address].flags == ADDRESS_PYTHON)
			return address;
	}
	return UINT32_MAX;
}

/* Returns the address of the caller of CUDA, or UINT32_MAX. */
static uint32_t find_caller(const struct recorded_process *process, uint32_t stack)
{
	stack = torsh_cuda_frames_shown(process, stack);
	while (stack && stack < process->tables->n_stacks &&
	       is_of_cuda(process, process->tables->stacks[stack].address))
		stack = process->tables->stacks[stack].parent;
	return stack && stack < process->tables->n_stacks ? process->tables->stacks[stack].address
							  : UINT32_MAX;
}

const struct frame *torsh_cuda_frames_line(const struct recorded_process *process, uint32_t stack,
					   struct symbols *symbols)
{
	uint32_t address = find_python(process, stack);

	if (address == UINT32_MAX)
		address = find_caller(process, stack);
	return address == UINT32_MAX ? NULL
				     : torsh_symbols_frames(symbols, process, address)->frames;
}
