/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions that jemalloc, tcmalloc and mimalloc export by names of their own (mallocx,
 * tc_malloc, mi_malloc), where the program was started with one of these libraries. Weak references
 * to such names are how programs ask whether the allocator is there: exported by the agent, they
 * would always find it. So the agent exports none, and changes instead the places in the loaded
 * objects where the loader has put these functions' addresses. An object without such references is
 * not touched.
 */
#ifndef TORSH_SHIM_ALLOCATORS_ALLOCATOR_CALLS_H
#define TORSH_SHIM_ALLOCATORS_ALLOCATOR_CALLS_H

#include <link.h>
#include <stdbool.h>

enum allocator { ALLOCATOR_JEMALLOC, ALLOCATOR_TCMALLOC, ALLOCATOR_MIMALLOC, N_ALLOCATORS };

/* The name that identifies each of them. */
extern const char *const torsh_allocator_calls_leaders[N_ALLOCATORS];

/* Whether any allocator's functions are interposed. */
extern bool torsh_allocator_calls_on;

/*
 * Interpose the functions in all objects that are loaded; once, when the heap is going to be
 * recorded and the program has no other threads yet.
 */
void torsh_allocator_objects_start(void);

/*
 * The same in objects that were opened since then. Takes the loader's lock; does nothing in a
 * forked child.
 */
void torsh_allocator_objects_recheck(void);

/* The first part of the start: find the functions of the allocators that are there. */
void torsh_allocator_calls_start(void);

/* Whether a library of this path is one of the allocators. */
bool torsh_allocator_calls_names(const char *path);

/* The number of the function with this name, -1 where it isn't one that is interposed. */
int torsh_allocator_calls_find(const char *name);

/* What a lookup of function i that found this address returns: the wrapper, or found itself. */
void *torsh_allocator_calls_instead(int i, void *found);

/*
 * The allocator's function i where references to its name bind to it; NULL: to another definition.
 */
void *torsh_allocator_calls_bound(int i);

/*
 * shim/loader/bindings.c: put the wrapper wherever the object's relocations have led to one of the
 * functions, or will (a function that is bound when it is first called). Not in an allocator
 * itself. False: something is left, because the loader may not have relocated the object yet; with
 * is_relocated it has.
 */
bool torsh_bindings_change(const struct dl_phdr_info *object, bool is_relocated);

#endif
