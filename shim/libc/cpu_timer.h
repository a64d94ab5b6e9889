/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Timers of a thread's processor time, by system calls: the kernel sends the thread a signal when
 * it has run for another period. Linux checks them at the scheduler's tick, while the thread runs.
 */
#ifndef TORSH_SHIM_LIBC_CPU_TIMER_H
#define TORSH_SHIM_LIBC_CPU_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Make a timer for the thread of this process, which is sent the signal with value every
 * period_ns. Returns 0 and the timer's id, or -errno.
 */
int torsh_cpu_timer_start(int tid, int signal, void *value, uint64_t period_ns, int *id);

/* End a timer. Keeps errno. */
void torsh_cpu_timer_end(int id);

/* The calling thread's processor time; 0: it is not known. Keeps errno. */
uint64_t torsh_cpu_timer_now(void);

/* The time between two ticks of the scheduler: no timer of this kind is finer. */
uint64_t torsh_cpu_timer_tick_ns(void);

/* Block all signals of the calling thread; *before is what was blocked. */
void torsh_cpu_timer_block(uint64_t *before);
void torsh_cpu_timer_unblock(const uint64_t *before);

/* Whether the process has neither a handler for the signal nor ignores it. */
bool torsh_cpu_timer_is_free(int signal);

#endif
