/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * sigaction, by which CPython gives signals their default actions back when it begins to end: after
 * the program's own exit handlers, and before it frees any module. No call is changed.
 */
#include <signal.h>

#include "shim/cpython/cpython.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"

static bool begins_to_end(const struct sigaction *action)
{
	return action && action->sa_handler == SIG_DFL &&
	       atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire) &&
	       torsh_cpython.is_finalizing && torsh_cpython.is_finalizing();
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (begins_to_end(action))
		torsh_process_finalizing();
	return torsh_next.sigaction(number, action, old);
}
