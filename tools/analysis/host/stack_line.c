/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/host/stack_line.h"

#include <string.h>

#include "agent/wire/channel.h"

static bool is_of_program(const struct recorded_process *process, uint32_t module)
{
	return module < process->tables->n_modules && process->tables->modules[module].path &&
	       process->program &&
	       strcmp(process->tables->modules[module].path, process->program) == 0;
}

uint64_t torsh_stack_line(const struct recorded_process *process, uint32_t stack)
{
	uint64_t own = 0;

	for (uint32_t at = stack; at && at < process->tables->n_stacks;
	     at = process->tables->stacks[at].parent) {
		uint32_t number = process->tables->stacks[at].address;
		const struct recorded_address *address =
			number < process->tables->n_addresses ? &process->tables->addresses[number]
							      : NULL;

		if (address && address->flags & ADDRESS_PYTHON)
			return UINT64_C(1) << 32 | number;
		if (address && !own && is_of_program(process, address->module))
			own = UINT64_C(2) << 32 | number;
	}
	return own ? own : stack;
}
