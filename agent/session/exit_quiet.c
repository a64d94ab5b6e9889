/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/exit_quiet.h"

#include <signal.h>
#include <sys/stat.h>

#include "shim/sys.h"

#define N_SIGNALS 64
#define FIRST_OF_LIBRARY 32 /* two that the C library keeps for itself */
#define LAST_OF_LIBRARY 33
#define LINKS_OF_ONE 3u /* of a folder with one folder in it */
#define SET_BYTES 8 /* of a signal set */

/* As the kernel has it; the rest is by architecture. */
struct kernel_action {
	uintptr_t handler;
	uint64_t rest[7];
};

static bool is_alone(void)
{
	struct stat status;

	return !torsh_sys_lstat("/proc/self/task", &status) && status.st_nlink == LINKS_OF_ONE;
}

static uint64_t handled(void)
{
	uint64_t set = 0;

	for (int number = 1; number <= N_SIGNALS; number++) {
		struct kernel_action action = {0};

		if (number >= FIRST_OF_LIBRARY && number <= LAST_OF_LIBRARY)
			continue;
		if (!TORSH_SYS(SYS_rt_sigaction, number, NULL, &action, SET_BYTES, 0, 0) &&
		    action.handler != (uintptr_t)SIG_DFL && action.handler != (uintptr_t)SIG_IGN)
			set |= UINT64_C(1) << (number - 1);
	}
	return set;
}

void torsh_exit_quiet_begin(struct exit_quiet *quiet)
{
	uint64_t set;

	*quiet = (struct exit_quiet){0};
	if (!is_alone())
		return;
	set = handled();
	quiet->is_quiet = set && !TORSH_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &set, &quiet->mask,
					    SET_BYTES, 0, 0);
}

void torsh_exit_quiet_end(struct exit_quiet *quiet)
{
	if (!quiet->is_quiet)
		return;
	quiet->is_quiet = false;
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &quiet->mask, NULL, SET_BYTES, 0, 0);
}
