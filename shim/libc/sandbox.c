/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls by which a program gives up system calls, as programs make them: prctl, and syscall,
 * which libseccomp uses. No later call of the agent may end the program.
 *
 * Defined under other names because the C library declares both as variadic. syscall ends with a
 * jump: vfork may be called through it, which returns twice.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdbool.h>

#include "shim/hooks.h"
#include "shim/libc/filter.h"
#include "shim/libc/next.h"
#include "shim/sys.h"

EXPORT int own_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
		     unsigned long d) __asm__("prctl");
EXPORT long own_syscall(long number, long a, long b, long c, long d, long e,
			long f) __asm__("syscall");

/* Strict mode permits read, write and exit, and may disable the time stamp counter. */
static bool is_strict(long number, unsigned long a, unsigned long b)
{
	if (number == SYS_seccomp)
		return a == SECCOMP_SET_MODE_STRICT;
	return (a == PR_SET_SECCOMP && b == SECCOMP_MODE_STRICT) ||
	       (a == PR_SET_TSC && b == PR_TSC_SIGSEGV);
}

static const struct sock_fprog *filter_of(long number, unsigned long a, unsigned long b,
					  unsigned long c)
{
	if (number == SYS_seccomp)
		return a == SECCOMP_SET_MODE_FILTER ? (const struct sock_fprog *)c : NULL;
	return a == PR_SET_SECCOMP && b == SECCOMP_MODE_FILTER ? (const struct sock_fprog *)c
							       : NULL;
}

/* What was done before a call and must be undone if it fails. */
struct preparation {
	bool is_muted; /* the thread is no longer recorded */
	bool is_counted; /* its filter is counted, as a harmless one */
};

static struct preparation prepare(long number, unsigned long a, unsigned long b, unsigned long c)
{
	const struct sock_fprog *filter = filter_of(number, a, b, c);
	struct preparation preparation = {0};

	if (filter && torsh_filter_harms(filter))
		torsh_process_forbidding();
	else if (filter)
		preparation.is_counted = torsh_process_filtering(number == SYS_seccomp &&
								 (b & SECCOMP_FILTER_FLAG_TSYNC));
	preparation.is_muted = is_strict(number, a, b) && torsh_process_muting();
	return preparation;
}

static void conclude(struct preparation preparation, bool is_done)
{
	if (preparation.is_counted)
		torsh_process_filtered(is_done);
	if (preparation.is_muted && !is_done)
		torsh_process_not_muted();
}

int own_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	struct preparation preparation = prepare(SYS_prctl, (unsigned long)option, a, b);
	int result = torsh_next.prctl(option, a, b, c, d);

	conclude(preparation, !result);
	return result;
}

static __attribute__((noinline)) long forbid(long number, long a, long b, long c, long d, long e,
					     long f)
{
	struct preparation preparation =
		prepare(number, (unsigned long)a, (unsigned long)b, (unsigned long)c);
	long result = torsh_next.syscall(number, a, b, c, d, e, f);
	/*
	 * A positive number is the listener's descriptor if one was requested, else a thread that
	 * can't take the filter.
	 */
	bool has_listener = number == SYS_seccomp && result > 0 &&
			    ((unsigned long)b & SECCOMP_FILTER_FLAG_NEW_LISTENER);

	conclude(preparation, !result || has_listener);
	return result;
}

long own_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (__builtin_expect(number == SYS_seccomp || number == SYS_prctl, 0))
		return forbid(number, a, b, c, d, e, f);
	return torsh_next.syscall(number, a, b, c, d, e, f);
}
