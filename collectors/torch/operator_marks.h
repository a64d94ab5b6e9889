/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What operators take on an accelerator whose only witness is its own runtime's events: a mark when
 * the operator begins and one when it ends, in the thread's stream, as PyTorch's profiler does for
 * PrivateUse1. What lies between the marks of an operator and of those that it calls is its own.
 * Every row of the table but CUDA's, which has better.
 */
#ifndef TORSH_COLLECTORS_TORCH_OPERATOR_MARKS_H
#define TORSH_COLLECTORS_TORCH_OPERATOR_MARKS_H

#include <stdint.h>

#include "agent/producer/producer.h"

struct operator_mark;

/*
 * Of one thread: the innermost of the operators that are open and were marked, which leads to those
 * around it.
 */
struct operator_marks {
	struct operator_mark *innermost;
};

/* The caller has entered the producer; key identifies the open calls of a thread. */
void torsh_operator_marks_begin(struct operator_marks *marks, uintptr_t key);
void torsh_operator_marks_end(struct operator_marks *marks, struct producer *producer,
			      uintptr_t key);

/* The process is about to end: wait for what was marked, and say it. */
void torsh_operator_marks_finish(void);

#endif
