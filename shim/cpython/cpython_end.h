/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether the interpreter begins to end: after the program's own exit handlers, and before it frees
 * any module. It then gives signals their default actions back, which the wrapper of sigaction
 * sees; but it leaves a SIGINT that is ignored alone, as in the background of a shell. Then each
 * free looks whether the end has begun.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_END_H
#define TORSH_SHIM_CPYTHON_CPYTHON_END_H

#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic bool torsh_cpython_end_is_watched;

/* Returns whether an interpreter is there that has begun to end. Any thread, also within a hook. */
bool torsh_cpython_is_ending(void);

/* SIGINT is ignored from now on, or no more. */
void torsh_cpython_watch_end(bool is_ignored);

/* An interpreter is there: look whether SIGINT is ignored. */
void torsh_cpython_find_end(void);

#endif
