/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions that jemalloc, tcmalloc and mimalloc export by names of their own (mallocx,
 * tc_malloc, mi_malloc), if the program was started with one of these libraries. Programs test for
 * the allocator by weak references to such names: if the agent exported them, that test would
 * always succeed. So the agent exports none. Instead it replaces the addresses of these functions
 * that the loader has stored in the loaded objects. An object without such references is not
 * modified.
 */
#ifndef TORSH_SHIM_ALLOCATORS_ALLOCATOR_CALLS_H
#define TORSH_SHIM_ALLOCATORS_ALLOCATOR_CALLS_H

#include <stdbool.h>

enum allocator { ALLOCATOR_JEMALLOC, ALLOCATOR_TCMALLOC, ALLOCATOR_MIMALLOC, N_ALLOCATORS };

/* The name that identifies each allocator. */
extern const char *const torsh_allocator_calls_leaders[N_ALLOCATORS];

/* Whether any allocator's functions are interposed. */
extern bool torsh_allocator_calls_on;

/*
 * Interpose the functions in all loaded objects. Called once, before the heap is recorded and while
 * the program has no other threads.
 */
void torsh_allocator_objects_start(void);

/*
 * The same in objects that were opened since. Takes the loader's lock; does nothing in a forked
 * child.
 */
void torsh_allocator_objects_recheck(void);

/* The first part of the start: find the functions of the present allocators. */
void torsh_allocator_calls_start(void);

/* Whether a library of this path is one of the allocators. */
bool torsh_allocator_calls_names(const char *path);

/* The number of the function with this name, -1 if it isn't interposed. */
int torsh_allocator_calls_find(const char *name);

/* The result of a lookup of function i that found this address: the wrapper, or found itself. */
void *torsh_allocator_calls_instead(int i, void *found);

/*
 * The definition of function i to which references to its name bind, if it is the allocator's; NULL
 * if it is another's.
 */
void *torsh_allocator_calls_bound(int i);

#endif
