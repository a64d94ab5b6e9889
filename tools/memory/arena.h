/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arenas: memory that CPython's allocator maps for objects. An arena's stack contains the Python
 * line that needed it first, but its bytes are not that line's alone: reports mark it.
 */
#ifndef TORSH_MEMORY_ARENA_H
#define TORSH_MEMORY_ARENA_H

#include "tools/recording/recording.h"

struct symbols;

/*
 * Returns true if the mapping with that stack is an arena, by the names of the innermost
 * functions; false without names.
 */
bool torsh_arena_is(struct symbols *symbols, const struct recorded_process *process,
		    uint32_t stack);

#endif
