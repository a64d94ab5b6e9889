/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls at the start and the end of each run of the main interpreter's cyclic garbage collector, by
 * one entry of gc.callbacks.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_GC_H
#define TORSH_SHIM_CPYTHON_CPYTHON_GC_H

#include <stdbool.h>
#include <stdint.h>

struct cpython_gc_run {
	uint32_t generation;
	uint64_t collected, uncollectable;
};

/* All are called with the GIL held and without an exception. */
struct cpython_gc_watcher {
	void (*attached)(bool is_attached); /* false: it is impossible */
	void (*started)(void);
	/* On the thread of started. frame: of the entry's function. */
	void (*stopped)(const struct cpython_gc_run *run, const void *frame);
	void (*removed)(void); /* by the program, not by the end of the interpreter */
};

/*
 * Have the entry appended once the main thread executes Python code; watcher must stay. Until
 * watcher->attached, and after the interpreter has ended, it may be called again. Does nothing
 * where the entry is there or was removed, and before the interpreter is initialised. Any thread;
 * once torsh_cpython_is_there also within a hook.
 */
void torsh_cpython_gc_watch(const struct cpython_gc_watcher *watcher);

/*
 * Let the interpreter's main thread make the call once, with the GIL, between two instructions of
 * Python. Returns 0 once it is queued; otherwise there is no interpreter, or no room. As
 * torsh_cpython_gc_watch.
 */
int torsh_cpython_add_pending_call(int (*call)(void *));

#endif
