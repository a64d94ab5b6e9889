/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Blocks that the loader, the C library, the C++ run-time and the agent own: not the program's
 * leaks. Decided by the stack, never by size or order; the rules and the names are in
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

/* Returns which of them a module is, by the last component of its path. */
enum bookkeeping_kind torsh_bookkeeping_module(const char *path);

/* Returns true if the caller of this C library function owns the memory that it allocates. */
bool torsh_bookkeeping_is_owned(const char *function);

/*
 * Returns the kind of bookkeeping of a block with that stack, e.g. "loader" or "C library: stdio
 * buffers"; NULL: the block is the program's. symbols (may be NULL) names functions without
 * recorded names. *caller: the stack without the library's frames; 0: there is no caller, or the
 * block is the agent's.
 */
const char *torsh_bookkeeping_of(struct symbols *symbols, const struct recorded_process *process,
				 uint32_t stack, uint32_t *caller);

#endif
