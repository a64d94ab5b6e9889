/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The next definitions of interposed functions. Each pointer starts as a stub that looks all of
 * them up, so that a wrapper calls torsh_next.NAME without a check.
 */
#ifndef TORSH_SHIM_LIBC_NEXT_H
#define TORSH_SHIM_LIBC_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* First what most calls need: one cache line. */
struct torsh_next {
	/*
	 * malloc_usable_size belongs to the allocator that serves the program, so that it may be
	 * called.
	 */
	alignas(64) bool has_usable_size;
#define NEXT(result, name, parameters, arguments, stub) result(*name) parameters;
#define NEXT_VOID(name, parameters, arguments, stub) void(*name) parameters;
#include "shim/libc/next.def"
#undef NEXT
#undef NEXT_VOID
};

extern struct torsh_next torsh_next;

/*
 * The functions of the aligned family, a bit for each that another library than malloc's defines.
 */
enum torsh_next_aligned {
	NEXT_POSIX_MEMALIGN,
	NEXT_ALIGNED_ALLOC,
	NEXT_MEMALIGN,
	NEXT_VALLOC,
	NEXT_PVALLOC
};
extern uint32_t torsh_next_is_elsewhere;

/*
 * The next definition of a name among the libraries that the program was started with, its size,
 * and whether it is in the library that serves malloc. NULL: there is none. Takes no lock and
 * leaves no dlerror.
 */
void *torsh_next_at_start(const char *name, size_t *n_bytes, bool *is_allocators);

/*
 * Whether the program, or a library preloaded before this one, defines the name. A reference does
 * not count.
 */
bool torsh_next_is_defined_before(const char *name);

/*
 * The code of the library that serves malloc if that is only an allocator: it defines one of
 * jemalloc's, tcmalloc's or mimalloc's own names. Otherwise NULL.
 */
const char *torsh_next_allocators_code(size_t *n_bytes);

/* The path of this library, as the loader got it; NULL if it is unavailable. */
const char *torsh_next_own_path(void);

/* Whether this library was loaded before the C library, so that its definitions come first. */
bool torsh_next_is_preloaded(void);

/*
 * Look up the next definitions, as the first call of any stub does. Called before the program runs:
 * a signal handler that interrupts a lookup and calls a stub fails. Returns 0 if the calling thread
 * is already looking them up.
 */
int torsh_next_resolve(void);

/*
 * Why the heap, or a part of it, cannot be recorded, as a sentence (the program defines malloc
 * itself, for example). NULL: it can be.
 */
const char *torsh_next_problem(void);

/* Path of the library that serves malloc, or "torsh's jemalloc". */
const char *torsh_next_allocator(void);

#endif
