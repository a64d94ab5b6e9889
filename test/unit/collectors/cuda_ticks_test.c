/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The clock of launches beside the kernel's: when a thread is kept waiting while it reads both, and
 * when the counter is set back or jumps ahead. The counter is a stand-in: the processor's, and what
 * it was moved by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/sys.h"
#include "test/unit/fixtures/late_clock.h"

#define BEGIN (UINT64_C(1) << 61) /* a counter is above 0, however far it is set back */

static uint64_t moved;

static inline uint64_t read_counter(void)
{
	return BEGIN + torsh_cpu_ticks() + moved;
}

#define torsh_cpu_ticks read_counter
/* Last, with the stand-in: it takes the place of the library's. */
#include "collectors/cuda/cuda_ticks.c"

bool torsh_producer_clock_is_monotonic; /* the processor's counter is used, whatever the machine */

#define NEAR_NS UINT64_C(1000000)
#define FAR_NS UINT64_C(50000000) /* within what is counted on from an anchor */
#define N_ANCHORS 12

/*
 * An anchor, in which that reading of the kernel's clock comes late; then both clocks are compared.
 */
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
	/* readings closer than 5 ms give no rate */
	const struct timespec apart = {.tv_nsec = 6000000};

	(void)state;
	for (int i = 0; i < N_ANCHORS; i++) {
		anchor_and_compare(i % 4);
		nanosleep(&apart, NULL);
	}
}

/* By so many ticks: of 50 ms; and of days, which no rate is for. */
static const uint64_t moves[] = {UINT64_C(-150000000), UINT64_C(150000000), UINT64_C(-1) << 50,
				 UINT64_C(1) << 50};

static void compare(uint64_t near_ns)
{
	uint64_t before_ns = torsh_cuda_monotonic_ns(), found_ns = torsh_cuda_now_ns();

	assert_in_range(found_ns, before_ns - near_ns, torsh_cuda_monotonic_ns() + near_ns);
}

/*
 * At any time after the move, and from the first anchor after it on as exact as ever; never by way
 * of a division by 0.
 */
static void the_counter_may_be_moved(void **state)
{
	const struct timespec apart = {.tv_nsec = 6000000};

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(moves) / sizeof(*moves); i++) {
		moved += moves[i % (sizeof(moves) / sizeof(*moves))];
		compare(2 * FAR_NS);
		for (int n = 0; n < 3; n++) {
			torsh_cuda_ticks_anchor();
			compare(NEAR_NS);
			nanosleep(&apart, NULL);
			compare(NEAR_NS);
		}
		assert_true(rate > 0);
	}
}

/* Between the base, which the rate is measured from, and the first rate. */
static void it_may_be_moved_before_there_is_a_rate(void **state)
{
	const struct timespec apart = {.tv_nsec = 6000000};

	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		base = next_base = last = (struct moment){0};
		rate = 0;
		torsh_cuda_ticks_anchor();
		moved += moves[i];
		nanosleep(&apart, NULL);
		torsh_cuda_ticks_anchor();
		compare(NEAR_NS);
		nanosleep(&apart, NULL);
		torsh_cuda_ticks_anchor();
		compare(NEAR_NS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_while_it_reads_does_not_set_the_clock_wrong),
		cmocka_unit_test(the_counter_may_be_moved),
		cmocka_unit_test(it_may_be_moved_before_there_is_a_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
