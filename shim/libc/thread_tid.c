/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdbool.h>

#include "shim/libc/thread.h"
#include "shim/sys.h"

static bool is_copy_stale; /* the C library's cached thread numbers are the parent's */

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
