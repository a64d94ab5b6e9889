/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arenas: what CPython's own allocator maps to give out objects from. The line of Python that made
 * one grow is in its stack, but its bytes are not that line's alone: reports show it.
 */
#ifndef TORSH_MEMORY_ARENA_H
#define TORSH_MEMORY_ARENA_H

#include "tools/recording/recording.h"

struct symbols;

/*
 * Returns true if the mapping with that stack is an arena. Recognised by the names of the innermost
 * functions; false without names.
 */
bool torsh_arena_is(struct symbols *symbols, const struct recorded_process *process,
		    uint32_t stack);

#endif
