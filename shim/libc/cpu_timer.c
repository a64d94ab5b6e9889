/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/cpu_timer.h"

#include <signal.h>
#include <time.h>

#include "shim/sys.h"

#define SIGNAL_SET_BYTES 8 /* the kernel's */
#define DEFAULT_TICK_NS UINT64_C(4000000)

#ifndef SIGEV_THREAD_ID
#define SIGEV_THREAD_ID 4
#endif

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

/* include/linux/posix-timers_types.h: CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED. */
static clockid_t clock_of(int tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 4 | 2);
}

int torsh_cpu_timer_start(int tid, int signal, void *value, uint64_t period_ns, int *id)
{
	struct sigevent event = {.sigev_value.sival_ptr = value,
				 .sigev_signo = signal,
				 .sigev_notify = SIGEV_THREAD_ID};
	struct itimerspec every = {.it_interval = time_of(period_ns),
				   .it_value = time_of(period_ns)};
	int made = -1;
	long result;

	event._sigev_un._tid = tid;
	result = TORSH_SYS(SYS_timer_create, clock_of(tid), &event, &made, 0, 0, 0);
	if (result)
		return (int)result;
	result = TORSH_SYS(SYS_timer_settime, made, 0, &every, NULL, 0, 0);
	if (result)
		torsh_cpu_timer_end(made);
	else
		*id = made;
	return (int)result;
}

void torsh_cpu_timer_end(int id)
{
	TORSH_SYS(SYS_timer_delete, id, 0, 0, 0, 0, 0);
}

uint64_t torsh_cpu_timer_now(void)
{
	struct timespec now;

	if (TORSH_SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now, 0, 0, 0, 0))
		return 0;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t torsh_cpu_timer_tick_ns(void)
{
	struct timespec tick;

	if (TORSH_SYS(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &tick, 0, 0, 0, 0) || tick.tv_sec)
		return DEFAULT_TICK_NS;
	return (uint64_t)tick.tv_nsec;
}

void torsh_cpu_timer_block(uint64_t *before)
{
	const uint64_t all = UINT64_MAX;

	*before = 0;
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, before, SIGNAL_SET_BYTES, 0, 0);
}

void torsh_cpu_timer_unblock(const uint64_t *before)
{
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, SIGNAL_SET_BYTES, 0, 0);
}

bool torsh_cpu_timer_is_free(int signal)
{
	uintptr_t action[8] = {0}; /* the kernel's struct, which begins with the handler */

	return !TORSH_SYS(SYS_rt_sigaction, signal, NULL, action, SIGNAL_SET_BYTES, 0, 0) &&
	       !action[0];
}
