/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* For whom a producer waits, and for whom it doesn't, on a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/producer/backpressure.h"

#define SECOND_NS UINT64_C(1000000000)
#define STEPS_OF_A_SECOND (SECOND_NS / BACKPRESSURE_STEP_NS)
#define FOR_EVER (3600 * STEPS_OF_A_SECOND)

struct waiting {
	struct backpressure backpressure;
	uint64_t now_ns;
	struct writer_progress signs;
};

static void begin(struct waiting *waiting, uint64_t cpu_ns)
{
	*waiting = (struct waiting){.now_ns = 5 * SECOND_NS,
				    .signs = {.heartbeat = 7, .cpu_ns = cpu_ns}};
	torsh_backpressure_begin(&waiting->backpressure, waiting->now_ns, waiting->signs);
}

/*
 * Queries after each step, in which the writer acts as given. Returns the number of steps of the
 * wait.
 */
static uint64_t wait_steps(struct waiting *waiting, uint64_t n_most, uint32_t beats,
			   uint64_t cpu_ns)
{
	for (uint64_t n = 1; n <= n_most; n++) {
		waiting->now_ns += BACKPRESSURE_STEP_NS;
		waiting->signs.heartbeat += beats;
		waiting->signs.cpu_ns += cpu_ns;
		if (!torsh_backpressure_lasts(&waiting->backpressure, waiting->now_ns,
					      waiting->signs))
			return n;
	}
	return n_most;
}

static void a_silent_writer_is_given_up_after_two_seconds(void **state)
{
	struct waiting waiting;

	(void)state;
	begin(&waiting, 100);
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 0, 0), 2 * STEPS_OF_A_SECOND);
	begin(&waiting, 0);
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 0, 0), 2 * STEPS_OF_A_SECOND);
}

static void one_that_computes_slowly_is_waited_for(void **state)
{
	struct waiting waiting;

	(void)state;
	begin(&waiting, 100);
	/* One pass of it takes five minutes, on a machine that gives it a hundredth of a CPU. */
	assert_int_equal(
		wait_steps(&waiting, 300 * STEPS_OF_A_SECOND, 0, BACKPRESSURE_STEP_NS / 100),
		300 * STEPS_OF_A_SECOND);
}

static void every_sign_begins_the_two_seconds_anew(void **state)
{
	struct waiting waiting;

	(void)state;
	begin(&waiting, 100);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(wait_steps(&waiting, 2 * STEPS_OF_A_SECOND - 1, 0, 0),
				 2 * STEPS_OF_A_SECOND - 1);
		assert_int_equal(wait_steps(&waiting, 1, i % 2, (i + 1) % 2), 1);
	}
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 0, 0), 2 * STEPS_OF_A_SECOND);
}

static void one_that_turns_in_circles_is_given_up(void **state)
{
	struct waiting waiting;

	(void)state;
	begin(&waiting, 100);
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 1, BACKPRESSURE_STEP_NS),
			 30 * STEPS_OF_A_SECOND);
	begin(&waiting, 0);
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 1, 0), 30 * STEPS_OF_A_SECOND);
	/* It does nearly nothing, for ever. */
	begin(&waiting, 100);
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 1, 1), 600 * STEPS_OF_A_SECOND);
}

static void time_without_the_producer_does_not_count(void **state)
{
	struct waiting waiting;

	(void)state;
	begin(&waiting, 100);
	/* Both were frozen for a day. */
	waiting.now_ns += 86400 * SECOND_NS;
	assert_true(torsh_backpressure_lasts(&waiting.backpressure, waiting.now_ns, waiting.signs));
	/* What counted of it is two steps. */
	assert_int_equal(wait_steps(&waiting, FOR_EVER, 0, 0), 2 * STEPS_OF_A_SECOND - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_writer_is_given_up_after_two_seconds),
		cmocka_unit_test(one_that_computes_slowly_is_waited_for),
		cmocka_unit_test(every_sign_begins_the_two_seconds_anew),
		cmocka_unit_test(one_that_turns_in_circles_is_given_up),
		cmocka_unit_test(time_without_the_producer_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
