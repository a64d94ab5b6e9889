/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls that set what signals do. By sigaction CPython gives signals their actions back when it
 * ends; the sampler's signal is shown as free, and left to a program that takes it.
 */
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

/* Whether a call of another function than sigaction is answered: the action was SIG_DFL. */
static bool is_answered(int number, sighandler_t handler)
{
	const struct sigaction action = {.sa_handler = handler};

	return torsh_cpu_signal_asked(number, &action, NULL);
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	return is_answered(number, handler) ? SIG_DFL : torsh_next.signal(number, handler);
}

EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
	return is_answered(number, handler) ? SIG_DFL : torsh_next.signal(number, handler);
}

EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return is_answered(number, handler) ? SIG_DFL : torsh_next.sysv_signal(number, handler);
}

EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	return is_answered(number, handler) ? SIG_DFL : torsh_next.sysv_signal(number, handler);
}

EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
	return is_answered(number, handler) ? SIG_DFL : torsh_next.sigset(number, handler);
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
