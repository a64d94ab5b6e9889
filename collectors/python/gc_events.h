/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs of CPython's cyclic garbage collector. README.md has what a program sees of it. */
#ifndef TORSH_COLLECTORS_PYTHON_GC_EVENTS_H
#define TORSH_COLLECTORS_PYTHON_GC_EVENTS_H

/*
 * Have the collector's runs recorded, where that was requested and is not done yet. Cheap; any
 * thread, also within a hook that found the interpreter.
 */
void torsh_gc_watch(void);

#endif
