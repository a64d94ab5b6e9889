/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How often the imports of a process ran. A module that is imported again and again (removed from
 * sys.modules each time) keeps its blocks each time: these are leaks. No event counts imports, but
 * the number of allocations by stack does: a line of a module's body runs once per import.
 */
#ifndef TORSH_MEMORY_LEAKS_IMPORT_RUNS_H
#define TORSH_MEMORY_LEAKS_IMPORT_RUNS_H

#include "agent/wire/channel.h"
#include "tools/frames/address_kinds.h"

struct import_runs {
	const struct recorded_process *process;
	bool *is_repeated; /* by the stack of an import */
};

/*
 * Returns which of n sorted counts of allocations below a Python line is how often the line ran.
 * The lowest are ignored, because some is allocated only by the first call: of few stacks half, of
 * many a tenth.
 */
size_t torsh_call_rank(size_t n);

/* Returns true if the innermost frame of a recorded stack, which is not 0, is a line of Python. */
static inline bool torsh_is_python_line(const struct recorded_process *process, uint32_t stack)
{
	uint32_t address = process->tables->stacks[stack].address;

	return address < process->tables->n_addresses &&
	       process->tables->addresses[address].flags == ADDRESS_PYTHON;
}

/*
 * Returns the stack, or the innermost of its callers, that ends in a line of Python; 0: none, or
 * the stack is unknown.
 */
uint32_t torsh_innermost_line(const struct recorded_process *process, uint32_t stack);

/* Find the imports that ran more than once. torsh_import_runs_end frees the result. */
void torsh_import_runs_find(struct import_runs *runs, struct address_kinds *kinds);

/* Free what was found. */
void torsh_import_runs_end(struct import_runs *runs);

#endif
