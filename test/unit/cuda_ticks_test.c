/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The clock of launches beside the kernel's, when a thread is kept waiting while it reads both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/cuda.h"

int torsh_flow_clock_is_monotonic; /* the processor's counter is used, whatever the machine */

#define WAIT_NS UINT64_C(20000000)
#define NEAR_NS UINT64_C(1000000)
#define N_ANCHORS 12

static int reading_to_wait_before; /* counted down; 0: none */

/* Instead of the C library's: some reading comes late. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (reading_to_wait_before && !--reading_to_wait_before) {
		const struct timespec wait = {.tv_nsec = (long)WAIT_NS};

		syscall(SYS_nanosleep, &wait, NULL);
	}
	return (int)syscall(SYS_clock_gettime, clock, now);
}

/* An anchor, in which that reading of the kernel's clock comes late; then both clocks are compared. */
static void anchor_and_compare(int late_reading)
{
	uint64_t before_ns, found_ns;

	reading_to_wait_before = late_reading;
	torsh_cuda_ticks_anchor();
	reading_to_wait_before = 0;
	before_ns = torsh_cuda_monotonic_ns();
	found_ns = torsh_cuda_now_ns();
	assert_in_range(found_ns, before_ns - NEAR_NS, torsh_cuda_monotonic_ns() + NEAR_NS);
}

static void who_waits_while_it_reads_does_not_set_the_clock_wrong(void **state)
{
	const struct timespec apart = {.tv_nsec = 6000000}; /* readings closer than 5 ms give no rate */

	(void)state;
	for (int i = 0; i < N_ANCHORS; i++) {
		anchor_and_compare(i % 4);
		nanosleep(&apart, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_while_it_reads_does_not_set_the_clock_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
