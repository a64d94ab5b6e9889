/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/exit_quiet.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/sys.h"

#define N_SIGNALS 64
#define FIRST_OF_LIBRARY 32 /* two that the C library keeps for itself */
#define LAST_OF_LIBRARY 33
#define SET_BYTES 8 /* of a signal set */

/* As the kernel has it; the rest is by architecture. */
struct kernel_action {
	uintptr_t handler;
	uint64_t rest[7];
};

/* Of the process's only thread, whose stack may be small. */
static bool is_quiet;
static uint64_t own_mask;

/* The kernel refuses this to a process with several threads, and does nothing for one. */
static bool is_alone(void)
{
	return !TORSH_SYS(SYS_unshare, CLONE_THREAD, 0, 0, 0, 0, 0);
}

/* Called by the only thread. */
static uint64_t handled(void)
{
	static struct kernel_action action;
	uint64_t set = 0;

	for (int number = 1; number <= N_SIGNALS; number++) {
		if (number >= FIRST_OF_LIBRARY && number <= LAST_OF_LIBRARY)
			continue;
		if (!TORSH_SYS(SYS_rt_sigaction, number, NULL, &action, SET_BYTES, 0, 0) &&
		    action.handler != (uintptr_t)SIG_DFL && action.handler != (uintptr_t)SIG_IGN)
			set |= UINT64_C(1) << (number - 1);
	}
	return set;
}

void torsh_exit_quiet_begin(void)
{
	uint64_t set;

	if (is_quiet || !is_alone())
		return;
	set = handled();
	is_quiet =
		set && !TORSH_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &set, &own_mask, SET_BYTES, 0, 0);
}

void torsh_exit_quiet_end(void)
{
	if (!is_quiet)
		return;
	is_quiet = false;
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &own_mask, NULL, SET_BYTES, 0, 0);
}
