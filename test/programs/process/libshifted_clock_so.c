/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Preloaded into a writer by a test: its wall clock is ahead by SHIFT_NS, which simulates a host
 * whose clock is set wrongly. No other clock is touched.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at)
{
	const char *shift = getenv("SHIFT_NS");
	long long ns;
	int result = (int)syscall(SYS_clock_gettime, clock, at);

	if (result || clock != CLOCK_REALTIME || !shift)
		return result;
	ns = at->tv_nsec + atoll(shift) % 1000000000;
	at->tv_sec += atoll(shift) / 1000000000 + ns / 1000000000;
	at->tv_nsec = ns % 1000000000;
	return 0;
}
