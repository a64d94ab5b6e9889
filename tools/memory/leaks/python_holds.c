/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/python_holds.h"

#include "tools/memory/leaks/block_classes.h"
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

/* Returns true if the interpreter or a library allocated the block for a line of Python. */
static bool is_of_python(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_tables *tables = kinds->process->tables;
	uint32_t line = torsh_innermost_line(kinds->process, stack);

	for (; line && stack != line; stack = tables->stacks[stack].parent) {
		uint32_t address = tables->stacks[stack].address;

		if (torsh_address_kind(kinds, address) == FRAME_OWN ||
		    torsh_address_calls_c(kinds, address))
			return false;
	}
	return line;
}

bool torsh_python_holds_in_use(struct address_kinds *kinds, const struct allocation_site *site)
{
	const struct recorded_process *process = site->process;

	return process->forked_from && process->ended_by__exit &&
	       torsh_block_class_is_kept(torsh_block_class_of(site)) &&
	       is_of_python(kinds, site->stack);
}
