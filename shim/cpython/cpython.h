/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The CPython interpreter in this process, if there is one: its version, its memory layout as far
 * as stacks need it, and the few functions that may be called at any time. Found when the first
 * stack passes through it; nothing is loaded, and none of its headers is used.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_H
#define TORSH_SHIM_CPYTHON_CPYTHON_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/cpython/cpython_layout.h"

struct cpython {
	uint32_t version; /* major << 8 | minor */
	bool is_free_threaded;
	struct cpython_layout at;
	void *(*this_thread)(void); /* PyGILState_GetThisThreadState */
	int (*is_finalizing)(void);
	int (*is_initialized)(void);
	/* Any thread, also within a hook, once is_initialized returns true. */
	int (*add_pending_call)(int (*function)(void *argument), void *argument);
	/*
	 * Before 3.12 this_thread returns only the first thread state of a thread that runs a
	 * second interpreter: the state that holds the lock may then be its own. NULL from 3.12 on.
	 */
	void *(*holder)(void), *(*first_interpreter)(void), *(*main_interpreter)(void);
	uintptr_t code_type;
	uintptr_t eval_start, eval_bytes; /* the code of the evaluation function */
};

extern struct cpython torsh_cpython; /* complete once torsh_cpython_is_there */
extern _Atomic int torsh_cpython_is_there;

enum cpython_answer {
	CPYTHON_NONE, /* not an interpreter, or another one was found before */
	CPYTHON_FOUND,
	CPYTHON_UNKNOWN, /* an unsupported version: torsh_cpython.version */
};

/*
 * Whether this relocated object is the interpreter; if so its layout is stored in torsh_cpython.
 * Any thread, also within a hook.
 */
enum cpython_answer torsh_cpython_consider(const struct link_map *map);

/*
 * Code objects are freed, and others are made at their addresses. Every such death advances
 * torsh_cpython_deaths and the version of its address, which invalidates what is cached by address.
 */
#define CPYTHON_CODE_VERSIONS 8192u

extern _Atomic uint64_t torsh_cpython_deaths;
extern _Atomic uint32_t torsh_cpython_code_versions[CPYTHON_CODE_VERSIONS];

static inline _Atomic uint32_t *torsh_cpython_version_of(uintptr_t code)
{
	return &torsh_cpython_code_versions[(code >> 4 ^ code >> 17) % CPYTHON_CODE_VERSIONS];
}

static inline uint32_t torsh_cpython_code_version(uintptr_t code)
{
	return atomic_load_explicit(torsh_cpython_version_of(code), memory_order_relaxed);
}

#endif
