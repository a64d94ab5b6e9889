/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The private jemalloc: a static library with every symbol renamed, that serves the program's heap
 * where TORSH_PROFILER_ALLOCATOR=jemalloc asks for it.
 */
#ifndef TORSH_SHIM_ALLOCATORS_JEMALLOC_H
#define TORSH_SHIM_ALLOCATORS_JEMALLOC_H

#include <stdbool.h>

struct torsh_next;

/*
 * Put jemalloc's functions into the heap's places of next. has_single_threaded: the program was
 * started with a C library that has __libc_single_threaded. 0: this agent was built without it.
 */
int torsh_jemalloc_serve(struct torsh_next *next, bool has_single_threaded);

/*
 * If it doesn't serve now it never will: where a program locks all of its memory, jemalloc's is
 * none of that.
 */
void torsh_jemalloc_leave(void);

#endif
