/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The start of a process by all clocks, when a thread is kept waiting while it reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/process/clocks.h"
#include "agent/producer/producer.h"
#include "test/unit/fixtures/late_clock.h"

#define NEAR_NS 1000000
#define READINGS_OF_A_TRY 3

bool torsh_producer_clock_is_monotonic; /* the processor's counter is used, whatever the machine */

/* How far b is ahead of a. */
static int64_t between(uint64_t a, uint64_t b)
{
	return (int64_t)(b - a);
}

static void expect_same(int64_t a, int64_t b)
{
	if (a - b > NEAR_NS || b - a > NEAR_NS)
		fail_msg("%lld ns and %lld ns", (long long)a, (long long)b);
}

/* The nanoseconds at which the counter was there: on the line through two moments. */
static uint64_t ns_at(uint64_t ticks, const struct channel_header *a,
		      const struct channel_header *b)
{
	double rate = (double)(b->start_monotonic_ns - a->start_monotonic_ns) /
		      (double)(b->start_ticks - a->start_ticks);

	return a->start_monotonic_ns + (uint64_t)((double)(ticks - a->start_ticks) * rate);
}

static void all_clocks_show_the_same_moment(void **state)
{
	(void)state;
	for (int reading = 1; reading <= READINGS_OF_A_TRY; reading++) {
		struct channel_header before = {0}, found = {0}, after = {0};

		torsh_clocks_read(&before);
		late_reading = reading;
		torsh_clocks_read(&found);
		assert_int_equal(late_reading, 0);
		torsh_clocks_read(&after);
		expect_same(between(found.start_monotonic_ns, found.start_realtime_ns),
			    between(before.start_monotonic_ns, before.start_realtime_ns));
		expect_same(between(found.start_monotonic_ns,
				    ns_at(found.start_ticks, &before, &after)),
			    0);
	}
}

static void the_kernels_clock_is_all_there_is_where_no_counter_is_trusted(void **state)
{
	struct channel_header header = {0};

	(void)state;
	torsh_producer_clock_is_monotonic = 1;
	torsh_clocks_read(&header);
	torsh_producer_clock_is_monotonic = 0;
	assert_int_equal(header.start_ticks, header.start_monotonic_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_clocks_show_the_same_moment),
		cmocka_unit_test(the_kernels_clock_is_all_there_is_where_no_counter_is_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
