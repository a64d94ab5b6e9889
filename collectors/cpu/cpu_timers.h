/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The timers or clocks of the threads of this process, and the signal that they send. */
#ifndef TORSH_COLLECTORS_CPU_CPU_TIMERS_H
#define TORSH_COLLECTORS_CPU_CPU_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* The value of their signals: the program's own ones have another. */
extern char torsh_cpu_timers_mark;

/*
 * The program has blocked the signal on this thread, as far as it can see (cpu_masks.c). A new
 * thread inherits that.
 */
extern _Thread_local bool torsh_cpu_seems_blocked;

/*
 * How long a thread runs between two samples: by timers, and by clocks of perf_sampling.h, which
 * are used where they are finer and the kernel gives them; 0: none is wanted.
 */
struct cpu_periods {
	uint64_t timer_ns, clock_ns;
};

/*
 * Choose a signal that the program doesn't use, unless that was done in this process. handler is a
 * function for SA_SIGINFO. *is_first: this call did it. Returns the signal; 0: none is free.
 */
int torsh_cpu_timers_begin(void *handler, const struct cpu_periods *periods, bool *is_first);

/* Whether threads have clocks; one that got none has a timer. */
bool torsh_cpu_timers_have_clocks(void);

/* Why they have none, though they were wanted: -errno; 0: otherwise. */
int torsh_cpu_timers_clock_error(void);

/* The signal in use; 0: none. */
int torsh_cpu_timers_signal(void);

/* Start a timer for the thread. Returns its place + 1, or 0 without room or memory. */
uint32_t torsh_cpu_timers_add(int tid);

/* End it. */
void torsh_cpu_timers_remove(uint32_t place);

/*
 * Leave the signal to the program and continue with another one. Returns that; 0: none is free, and
 * no thread is sampled any more.
 */
int torsh_cpu_timers_give_way(void *handler);

#endif
