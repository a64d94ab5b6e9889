/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which threads ended the waits of which, where that can be known: of waits for locks, conditions,
 * semaphores, barriers and Python's lock that the timeline still has, and of reads and polls that a
 * thread ended.
 */
#ifndef TORSH_CPU_WAIT_WAKERS_H
#define TORSH_CPU_WAIT_WAKERS_H

#include "agent/wire/event.h"
#include "tools/recording/recording.h"

/* The waits of one kind of a thread that another one ended. Threads are rows of the process's. */
struct wait_waker {
	const struct recorded_process *process;
	uint32_t kind, thread;
	uint32_t waker; /* row + 1; 0: not known */
	uint64_t n, total_ns;
};

struct wait_wakers {
	struct wait_waker *items; /* those with the longest total first */
	size_t n;
};

/*
 * Collect them for these processes; kinds: bit i is set for each enum thread_wait_kind i that
 * counts. The caller frees them. Ends the program if the recording cannot be read.
 */
void torsh_wait_wakers_collect(struct wait_wakers *wakers, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n, uint32_t kinds);

/* Free them. */
void torsh_wait_wakers_free(struct wait_wakers *wakers);

#endif
