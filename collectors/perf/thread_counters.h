/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counters of the CPU, of each thread by itself: where an operator, a module, a range or a step
 * begins or ends, and at its own end, a thread sends what came since the last time. What the agent
 * does in that hook is not counted.
 *
 * What the kernel counts comes from getrusage and the thread's clock: they need neither a
 * descriptor nor a right, and count voluntary switches apart. Migrations and the processor's
 * counters come from perf_event_open.
 */
#ifndef TORSH_COLLECTORS_PERF_THREAD_COUNTERS_H
#define TORSH_COLLECTORS_PERF_THREAD_COUNTERS_H

#include "agent/process/config.h"
#include "agent/producer/producer.h"

/* The calling thread has got its producer: count from now on. */
void torsh_thread_counters_start(void);

/* The calling thread, or the process, ends: send the last counts. end: of the thread. */
void torsh_thread_counters_finish(bool is_thread_end);

/* Out-of-line parts of the three below. */
void torsh_thread_counters_send(struct producer *producer);
void torsh_thread_counters_rebase(struct producer *producer);
void torsh_thread_counters_forget(struct producer *producer);

static inline bool torsh_thread_counters_are_wanted(void)
{
	return __builtin_expect(torsh_config.activities & ACTIVITY_PERF, 0);
}

/* In a hook, before the event of a begin or an end. */
static inline void torsh_thread_counters_take(struct producer *producer)
{
	if (torsh_thread_counters_are_wanted())
		torsh_thread_counters_send(producer);
}

/* The hook is about to return. */
static inline void torsh_thread_counters_go_on(struct producer *producer)
{
	if (torsh_thread_counters_are_wanted())
		torsh_thread_counters_rebase(producer);
}

/* The begin or end is not sent: what came since the last time counts nowhere. */
static inline void torsh_thread_counters_skip(struct producer *producer)
{
	if (torsh_thread_counters_are_wanted())
		torsh_thread_counters_forget(producer);
}

#endif
