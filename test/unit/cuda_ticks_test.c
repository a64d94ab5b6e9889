/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The clock of launches beside the kernel's, when a thread is kept waiting while it reads both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collectors/cuda.h"
#include "late_clock.h"

int torsh_flow_clock_is_monotonic; /* the processor's counter is used, whatever the machine */

#define NEAR_NS UINT64_C(1000000)
#define N_ANCHORS 12

/* An anchor, in which that reading of the kernel's clock comes late; then both clocks are compared. */
static void anchor_and_compare(int reading)
{
	uint64_t before_ns, found_ns;

	late_reading = reading;
	torsh_cuda_ticks_anchor();
	late_reading = 0;
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
