/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Python frames in stacks: a capture of the native stack is merged with the lines that the
 * interpreter executes in each of its native frames. They are read from the interpreter's own chain
 * of frames, on its own thread, when an event needs a stack: no interpreter hook, no lock, and no
 * cost to code that allocates nothing.
 *
 * One struct python belongs to one struct stack: a thread's, or that of the signal handlers that
 * interrupt its hooks. First file of this folder; python_chain.h reads the chain, python_code.h and
 * python_lines.h turn it into ids.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_H
#define TORSH_AGENT_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/stack/stack.h"

struct link_map;
struct python;

/*
 * Check whether a loaded object that a stack passed through is the interpreter, and read its
 * version's layout. Any thread.
 */
void torsh_python_detect(const struct link_map *map);

/* The size of a struct python. Its storage is zeroed pages of the producer. */
size_t torsh_python_bytes(void);

/* Discard the cached frames. */
void torsh_python_invalidate(struct python *python);

/*
 * Merge Python frames into the delta that torsh_stack_capture just returned for stack: each run of
 * them directly outside of the native frame that executes it. is_main: the calling thread is the
 * one that ends the interpreter; from that end on other threads get no Python frames.
 */
void torsh_python_merge(struct python *python, const struct stack *stack, bool is_main,
			struct stack_delta *delta);

#endif
