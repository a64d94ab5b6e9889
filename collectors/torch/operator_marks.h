/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The time of operators on an accelerator, from its own runtime's events: a mark when the operator
 * begins and one when it ends, in the thread's stream, as PyTorch's profiler does for PrivateUse1.
 * The time between an operator's marks, without that of the operators that it calls, is its own.
 * Used for every row of the table except CUDA's, which has better sources.
 */
#ifndef TORSH_COLLECTORS_TORCH_OPERATOR_MARKS_H
#define TORSH_COLLECTORS_TORCH_OPERATOR_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/producer/producer.h"

struct operator_mark;

/* Of one thread: the innermost open, marked operator, which is linked to the outer ones. */
struct operator_marks {
	struct operator_mark *innermost;
};

/* The caller has entered the producer; key identifies the open calls of a thread. */
void torsh_operator_marks_begin(struct operator_marks *marks, uintptr_t key);

/* The slow path of torsh_operator_marks_end: some operators are marked. */
void torsh_operator_marks_close(struct operator_marks *marks, struct producer *producer,
				uintptr_t key);

/* The operator with this key ends; the caller has entered the producer. */
static inline void torsh_operator_marks_end(struct operator_marks *marks, struct producer *producer,
					    uintptr_t key)
{
	if (__builtin_expect(marks->innermost != NULL, 0))
		torsh_operator_marks_close(marks, producer, key);
}

/* The process is about to end: wait for the marked operators and send their times. */
void torsh_operator_marks_finish(void);

#endif
