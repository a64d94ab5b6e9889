/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The definitions that our hooks interpose. Each starts as a stub that looks all of them up, so
 * that a hook calls torsh_next.NAME without asking whether it is there.
 */
#ifndef TORSH_SHIM_LIBC_NEXT_H
#define TORSH_SHIM_LIBC_NEXT_H

#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct torsh_next {
#define NEXT(result, name, parameters, arguments, stub) result(*name) parameters;
#define NEXT_VOID(name, parameters, arguments, stub) void(*name) parameters;
#include "shim/libc/next.def"
#undef NEXT
#undef NEXT_VOID
};

extern struct torsh_next torsh_next;

/* malloc_usable_size belongs to the allocator that serves the program: it may be asked. */
extern int torsh_next_has_usable_size;

/* Of these, a bit for each that another library than malloc's serves. */
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
 * and whether it is in the library whose malloc serves the program. NULL: there is none. Takes no
 * lock and leaves no dlerror.
 */
void *torsh_next_at_start(const char *name, size_t *n_bytes, int *is_allocators);

/*
 * Does the program define the name, or a library that was preloaded before this one? Not so by a
 * reference to it.
 */
int torsh_next_is_defined_before(const char *name);

/*
 * Where the library whose malloc serves the program lies, when it is an allocator and nothing else:
 * one of jemalloc's, tcmalloc's or mimalloc's own names is in it. NULL: it is another one.
 */
const char *torsh_next_allocators_code(size_t *n_bytes);

/*
 * The path by which the loader knows this library, as it was given to it. NULL when it can't be
 * told.
 */
const char *torsh_next_own_path(void);

/* Was this library loaded before the C library, so that its definitions come first? */
int torsh_next_is_preloaded(void);

/*
 * Look the next definitions up, which the first call of any would do, too. A signal handler that
 * interrupts it and calls one itself gets a failure for an answer: so it is done before the program
 * runs. 0: it is the calling thread that looks them up, further out.
 */
int torsh_next_resolve(void);

/*
 * A sentence when the heap, or a part of it, can't be seen, e.g. the program defines malloc itself.
 * NULL: all is well.
 */
const char *torsh_next_problem(void);

/* Path of the library whose malloc serves the program, or "torsh's jemalloc". */
const char *torsh_next_allocator(void);

#endif
