/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kernel's clocks, of which some reading comes late: the thread was kept waiting. One test program includes it. */
#ifndef TORSH_TEST_LATE_CLOCK_H
#define TORSH_TEST_LATE_CLOCK_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATE_NS 20000000 /* by so much */

static int late_reading; /* counted down; 0: none */

/* Instead of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (late_reading && !--late_reading) {
		const struct timespec wait = {.tv_nsec = LATE_NS};

		syscall(SYS_nanosleep, &wait, NULL);
	}
	return (int)syscall(SYS_clock_gettime, clock, now);
}

#endif
