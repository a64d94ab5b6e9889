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

/* Decides for the stacks of one process; each module is looked at once. */
struct bookkeeping {
	struct symbols *symbols; /* name functions without recorded names; may be NULL */
	const struct recorded_process *process;
	uint8_t *kinds; /* by module: enum bookkeeping_kind + 1; 0: not looked at yet */
};

/* Start; symbols may be NULL. The caller ends it. */
void torsh_bookkeeping_start(struct bookkeeping *book, struct symbols *symbols,
			     const struct recorded_process *process);

/* Free what is cached. */
void torsh_bookkeeping_end(struct bookkeeping *book);

/*
 * Returns the kind of bookkeeping of a block with that stack, e.g. "loader" or "C library: stdio
 * buffers"; NULL: the block is the program's. *caller: the stack without the library's frames; 0:
 * there is no caller, or the block is the agent's.
 */
const char *torsh_bookkeeping_of(struct bookkeeping *book, uint32_t stack, uint32_t *caller);

#endif
