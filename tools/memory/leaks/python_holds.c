/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/python_holds.h"

#include "tools/memory/leaks/import_runs.h"

bool torsh_python_holds_outside(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	const struct recorded_tables *tables = process->tables;
	bool has_interpreter = false;

	if (!tables->has_python || torsh_innermost_line(process, stack))
		return false;
	for (; stack && stack < tables->n_stacks; stack = tables->stacks[stack].parent) {
		enum frame_kind kind = torsh_address_kind(kinds, tables->stacks[stack].address);

		if (kind != FRAME_INTERPRETER && kind != FRAME_C_LIBRARY)
			return false;
		has_interpreter |= kind == FRAME_INTERPRETER;
	}
	return has_interpreter && !stack;
}
