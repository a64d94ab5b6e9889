/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Python frames in stacks: what a capture of the native stack found is amended by the lines that
 * the interpreter executes in each of its native frames. Read from the interpreter's own chain of
 * frames, in its own thread, when an event needs a stack: no hook of the interpreter, no lock,
 * nothing paid by code that allocates nothing.
 *
 * One struct python belongs to one struct stack: a thread's, or that of the handlers that interrupt
 * its hooks.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_H
#define TORSH_AGENT_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/stack/stack.h"

struct link_map;
struct python;

/* A loaded object was met by a stack: is it the interpreter? */
void torsh_python_detect(const struct link_map *map);

/* Storage is so many zeroed bytes, aligned as pages are, of the producer's own. */
size_t torsh_python_bytes(void);

/* What it found before is used no more. */
void torsh_python_invalidate(struct python *python);

/*
 * Amend the difference that torsh_stack_capture just found for stack: it becomes one between stacks
 * with Python frames in them, each run directly outside of the native frame that executes it.
 * is_main: the calling thread is the one that ends the interpreter; other threads see nothing of
 * Python from then on.
 */
void torsh_python_merge(struct python *python, const struct stack *stack, bool is_main,
			struct stack_delta *delta);

#endif
