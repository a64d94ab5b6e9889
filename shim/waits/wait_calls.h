/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The C library's functions in which a thread waits, and those that end such waits, interposed in
 * the loaded objects' references to them; without torsh_waits_objects_start nothing is changed.
 * Functions that the agent exports (send, sigwait) are wrapped like those of the C library. The C
 * library's calls of itself aren't seen.
 */
#ifndef TORSH_SHIM_WAITS_WAIT_CALLS_H
#define TORSH_SHIM_WAITS_WAIT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define TORSH_WAITS_CONDITION_VERSION "GLIBC_2.3.2" /* of pthread_cond_*, but for clockwait */
#endif

enum waits_function {
#define WAIT(result, name, ...) WAITS_##name,
#define TRIED(name, ...) WAITS_##name,
#define WAKE(name, whom) WAITS_##name,
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED
	N_WAITS_FUNCTIONS
};

/* ---- wrappers (shim/waits/wait_wrappers.c) --------------------------------------------------- */

/* Look up the next definitions. Before any wrapper is bound. */
void torsh_waits_find(void);

/* The number of the function with this name; -1: it isn't interposed, or has no definition. */
int torsh_waits_number(const char *name);

/* The next definition of a function, and its wrapper. */
void *torsh_waits_next(int i);
void *torsh_waits_wrapper(int i);

/* ---- objects (shim/waits/wait_objects.c) ----------------------------------------------------- */

extern bool torsh_waits_objects_on;

/*
 * From now on interpose the functions in all loaded objects, and in those that will be opened.
 * Called once, while the program has no other threads.
 */
void torsh_waits_objects_start(void);

/* Interpose the functions in objects that were opened since. Takes the loader's lock. */
void torsh_waits_objects_recheck(void);

/* ---- Python (shim/waits/wait_python.c) ------------------------------------------------------- */

struct dl_phdr_info;

/* If this object is the interpreter, remember where its state lies. */
void torsh_waits_consider_python(const struct dl_phdr_info *object);

/*
 * Whether the address lies in the interpreter's state, _PyRuntime, which has the global lock of the
 * main interpreter.
 */
bool torsh_waits_is_of_python(uintptr_t address);

#endif
