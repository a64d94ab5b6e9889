/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When the threads of a process were in operators, waits and Python's garbage collector: what the
 * parts of steps and their critical path are made of.
 */
#ifndef TORSH_CPU_THREAD_STAYS_H
#define TORSH_CPU_THREAD_STAYS_H

#include "tools/cpu/step_parts.h"

/* A thread is in it from begin to end. */
struct thread_stay {
	uint64_t begin_ns, end_ns;
	uint32_t thread; /* row */
	enum step_part part; /* PART_OPERATORS, PART_GC or a wait's */
	uint32_t name; /* label of an operator that no other encloses; 0: it is none */
	bool is_backward; /* that operator is a node of autograd */
	uint32_t wait; /* enum thread_wait_kind + 1; 0: it is no wait */
	uint32_t waker; /* thread that ended the wait at woken_ns, + 1; 0: not recorded */
	uint64_t woken_ns;
};

struct thread_stays {
	struct thread_stay *items;
	size_t n, n_room;
};

/* Add a stay; one that takes no time is left out. */
void torsh_thread_stays_add(struct thread_stays *stays, struct thread_stay stay);

/* Pass the end of each span. */
void torsh_thread_stays_end(struct thread_stays *stays, const struct span *span);

/* Pass all other events; innermost: the operator on the thread, or NULL. */
void torsh_thread_stays_event(struct thread_stays *stays, const struct timeline_event *event,
			      const struct span *innermost);

/* The thread with most time in operators within steps; without any, the first that is known. */
uint32_t torsh_thread_stays_main(const struct thread_stays *stays, const struct steps *steps,
				 size_t n_threads);

/* Free the stays. */
void torsh_thread_stays_free(struct thread_stays *stays);

#endif
