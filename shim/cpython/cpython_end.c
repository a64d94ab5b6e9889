/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_end.h"

#include <signal.h>
#include <stdint.h>

#include "shim/cpython/cpython.h"
#include "shim/hot.h"
#include "shim/sys.h"

/* The kernel's. */
struct kernel_action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

HOT _Atomic bool torsh_cpython_end_is_watched;

bool torsh_cpython_is_ending(void)
{
	return atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire) &&
	       torsh_cpython.is_finalizing && torsh_cpython.is_finalizing();
}

void torsh_cpython_watch_end(bool is_ignored)
{
	atomic_store_explicit(&torsh_cpython_end_is_watched, is_ignored, memory_order_relaxed);
}

void torsh_cpython_find_end(void)
{
	struct kernel_action action = {0};

	if (!TORSH_SYS(SYS_rt_sigaction, SIGINT, NULL, &action, sizeof(action.mask), 0, 0) &&
	    action.handler == (uintptr_t)SIG_IGN)
		torsh_cpython_watch_end(true);
}
