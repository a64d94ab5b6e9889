/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A munmap, preloaded after the agent, that raises a signal: as often as configured. The agent's
 * wrapper is active meanwhile.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int n_signals_left;

int munmap(void *at, size_t n_bytes)
{
	if (n_signals_left > 0) {
		n_signals_left--;
		raise(SIGUSR1);
	}
	return (int)syscall(SYS_munmap, at, n_bytes);
}
