/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Samples of a thread's processor time by perf_event_open: a clock of the thread that sends it a
 * signal after each period in which it ran, to the nanosecond, where timers of POSIX are checked at
 * ticks only.
 *
 * Only periods that end in user space send one: a signal that comes while the thread enters a call
 * would interrupt the call. The signal is one without a queue: else each period in which it is
 * blocked would queue another, and the kernel sends SIGIO when a queue is full. No descriptor
 * stays: the mapping keeps the clock alive.
 */
#ifndef TORSH_SHIM_PERF_PERF_SAMPLING_H
#define TORSH_SHIM_PERF_PERF_SAMPLING_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* For faults of a coprocessor that Linux has never had: neither the kernel nor programs send it. */
#define PERF_SAMPLING_SIGNAL SIGSTKFLT

/*
 * Send the thread of this process the signal from now on. Returns the page to end it by, or NULL
 * and *error: -errno.
 */
void *torsh_perf_sampling_start(int tid, int signal, uint64_t period_ns, int *error);

/* End it. */
void torsh_perf_sampling_end(void *page);

/* Whether a signal is of such a clock. */
bool torsh_perf_sampling_is_it(const siginfo_t *info);

#endif
