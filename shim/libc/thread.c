/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "shim/libc/next.h"
#include "shim/sys.h"

static bool is_copy_stale; /* the C library's cached thread numbers are the parent's */

/* of address space; the functions called in other libraries decide how much is touched */
#define STACK_BYTES (1u << 20)

int torsh_thread_start(void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* The C library excludes the signals by which its setuid reaches all threads. */
	sigfillset(&all);
	torsh_next.pthread_sigmask(SIG_SETMASK, &all, &before);
	error = torsh_next.pthread_create(&thread, &attributes, run, argument);
	torsh_next.pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

/*
 * The tid is contained in the number of the thread's CPU clock
 * (include/linux/posix-timers_types.h).
 */
static int remembered_tid(void)
{
	clockid_t clock;

	return pthread_getcpuclockid(pthread_self(), &clock) ? 0 : ~(clock >> 3);
}

int torsh_thread_tid(void)
{
	int tid = is_copy_stale ? 0 : remembered_tid();

	return tid ? tid : torsh_sys_gettid();
}

void torsh_thread_forked(void)
{
	is_copy_stale = !torsh_sys_is_self((uint32_t)remembered_tid());
}

void torsh_thread_name(const char *name)
{
	TORSH_SYS(SYS_prctl, PR_SET_NAME, name, 0, 0, 0, 0);
}
