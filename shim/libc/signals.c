/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* sigaction, by which CPython gives signals their actions back when it ends. No call is changed. */
#include "shim/libc/signals.h"

#include <signal.h>

#include "shim/cpython/cpython.h"
#include "shim/cpython/cpython_end.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/sys.h"

void torsh_signals_freeing(void)
{
	/* Other threads may end, too. */
	if (!torsh_cpython_is_ending() || torsh_sys_gettid() != torsh_sys_getpid())
		return;
	torsh_cpython_watch_end(false);
	torsh_process_finalizing();
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (torsh_cpu_signal_asked(number, action, old))
		return 0;
	if (action && action->sa_handler == SIG_DFL && torsh_cpython_is_ending())
		torsh_process_finalizing();
	if (number == SIGINT && action &&
	    atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		torsh_cpython_watch_end(action->sa_handler == SIG_IGN);
	return torsh_next.sigaction(number, action, old);
}
