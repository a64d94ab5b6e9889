/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls by which a program takes system calls from itself, as programs make them: prctl, and syscall, by which
 * libseccomp does it. What the agent does afterwards must not be what ends the program.
 *
 * Under other names here, as the C library declares both with three dots. syscall ends with a jump: vfork may come by it,
 * which returns twice.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "shim/filter.h"
#include "shim/hooks.h"
#include "shim/next.h"
#include "shim/sys.h"

EXPORT int own_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) __asm__("prctl");
EXPORT long own_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

/* Strict mode leaves read, write and exit, and takes the time stamp counter too. */
static int is_strict(long number, unsigned long a, unsigned long b)
{
	if (number == SYS_seccomp)
		return a == SECCOMP_SET_MODE_STRICT;
	return (a == PR_SET_SECCOMP && b == SECCOMP_MODE_STRICT) || (a == PR_SET_TSC && b == PR_TSC_SIGSEGV);
}

static const struct sock_fprog *filter_of(long number, unsigned long a, unsigned long b, unsigned long c)
{
	if (number == SYS_seccomp)
		return a == SECCOMP_SET_MODE_FILTER ? (const struct sock_fprog *)c : NULL;
	return a == PR_SET_SECCOMP && b == SECCOMP_MODE_FILTER ? (const struct sock_fprog *)c : NULL;
}

/* Returns whether the thread is no longer recorded: torsh_process_not_muted gets it when the call failed. */
static int prepare(long number, unsigned long a, unsigned long b, unsigned long c)
{
	const struct sock_fprog *filter = filter_of(number, a, b, c);

	if (filter && torsh_filter_harms(filter))
		torsh_process_forbidding();
	return is_strict(number, a, b) && torsh_process_muting();
}

int own_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	int is_muted = prepare(SYS_prctl, (unsigned long)option, a, b);
	int result = torsh_next.prctl(option, a, b, c, d);

	if (is_muted && result)
		torsh_process_not_muted();
	return result;
}

static __attribute__((noinline)) long forbid(long number, long a, long b, long c, long d, long e, long f)
{
	int is_muted = prepare(number, (unsigned long)a, (unsigned long)b, (unsigned long)c);
	long result = torsh_next.syscall(number, a, b, c, d, e, f);

	if (is_muted && result)
		torsh_process_not_muted();
	return result;
}

long own_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (__builtin_expect(number == SYS_seccomp || number == SYS_prctl, 0))
		return forbid(number, a, b, c, d, e, f);
	return torsh_next.syscall(number, a, b, c, d, e, f);
}
