/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The private jemalloc: a static library with every symbol renamed. It serves the program's heap on
 * TORSH_PROFILER_ALLOCATOR=jemalloc.
 */
#ifndef TORSH_SHIM_ALLOCATORS_JEMALLOC_H
#define TORSH_SHIM_ALLOCATORS_JEMALLOC_H

#include <stdbool.h>

struct torsh_next;

/*
 * Store jemalloc's functions as the heap's definitions in next. has_single_threaded: the program
 * was started with a C library that has __libc_single_threaded. Returns 0 if this agent was built
 * without jemalloc.
 */
int torsh_jemalloc_serve(struct torsh_next *next, bool has_single_threaded);

/*
 * Release its memory unless it serves: from now on it never will. It must not count in a program
 * that locks all of its memory.
 */
void torsh_jemalloc_leave(void);

#endif
