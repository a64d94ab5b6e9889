/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Blocks that the loader, the C library, the C++ run-time and the agent keep for themselves: not
 * the program's leaks. Decided by the stack, never by size or order; the rules and the names are in
 * tools/memory/leaks/bookkeeping.def.
 */
#ifndef TORSH_MEMORY_LEAKS_BOOKKEEPING_H
#define TORSH_MEMORY_LEAKS_BOOKKEEPING_H

#include "tools/recording/recording.h"

struct symbols;

enum bookkeeping_kind {
	BOOKKEEPING_NONE,
	BOOKKEEPING_LOADER,
	BOOKKEEPING_C_LIBRARY,
	BOOKKEEPING_CXX_RUNTIME,
};

/* Which of them a module is, by the last component of its path. */
enum bookkeeping_kind torsh_bookkeeping_module(const char *path);

/* Does the caller of this function of the C library own what it allocates? */
bool torsh_bookkeeping_is_owned(const char *function);

/*
 * Which bookkeeping a block with that stack is, e.g. "loader" or "C library: stdio buffers"; NULL:
 * it is the program's. symbols names functions that the recording doesn't; it may be NULL. *caller:
 * the stack without the library's frames, that of whoever called it; 0: nobody did, or the block is
 * the agent's.
 */
const char *torsh_bookkeeping_of(struct symbols *symbols, const struct recorded_process *process,
				 uint32_t stack, uint32_t *caller);

#endif
