/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls by which threads block signals and wait for them. While the sampler uses a signal, the
 * program sees it as it would be without: blocked where it blocked it, and never pending. Without a
 * sampler no call is changed.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"

typedef int mask_function(int how, const sigset_t *set, sigset_t *old);

static inline __attribute__((always_inline)) int mask(mask_function *next, int how,
						      const sigset_t *set, sigset_t *old)
{
	struct cpu_masking masking;
	sigset_t changed;
	int result;

	if (!torsh_cpu_masking(&masking, how, set, &changed))
		return next(how, set, old);
	result = next(how, masking.is_changed ? &changed : set, old);
	if (!result)
		torsh_cpu_masked(&masking, old);
	return result;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask(torsh_next.sigprocmask, how, set, old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask(torsh_next.pthread_sigmask, how, set, old);
}

EXPORT int sigpending(sigset_t *set)
{
	int result = torsh_next.sigpending(set);

	if (!result)
		torsh_cpu_pending(set);
	return result;
}

EXPORT int sigwait(const sigset_t *set, int *number)
{
	sigset_t changed;

	return torsh_next.sigwait(torsh_cpu_waiting(set, &changed), number);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t changed;

	return torsh_next.sigwaitinfo(torsh_cpu_waiting(set, &changed), info);
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t changed;

	return torsh_next.sigtimedwait(torsh_cpu_waiting(set, &changed), info, timeout);
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t changed;

	return torsh_next.signalfd(fd, torsh_cpu_waiting(set, &changed), flags);
}
