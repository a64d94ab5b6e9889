/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of all threads of another process, native and Python frames, read from outside: each
 * thread is stopped by ptrace for the time that its stack takes, without a signal.
 */
#ifndef TORSH_LIVE_STACKS_STACKS_H
#define TORSH_LIVE_STACKS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_frame {
	char *function; /* demangled; NULL: not known */
	char *place; /* the module's base name; of Python "FILE:LINE" */
	bool is_python;
};

/* Innermost frames first. */
struct thread_stack {
	uint32_t tid;
	char name[16];
	char state; /* as in /proc/TID/stat: R, S, D and others */
	char *reason; /* why the stack is not, or not wholly, known; NULL: it is */
	struct stack_frame *frames;
	size_t n_frames, capacity;
};

struct thread_stacks {
	uint32_t pid;
	struct thread_stack *items; /* in the order of their numbers */
	size_t n, capacity;
};

/* Take the stacks; what can't be had has a reason. */
void torsh_thread_stacks_take(struct thread_stacks *stacks, uint32_t pid);

/* Free them. */
void torsh_thread_stacks_free(struct thread_stacks *stacks);

#endif
