/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A step that is far slower than the median of those before is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/tables/step_pace.h"

/* Steps of these lengths; returns the number of those that were found slow. */
static uint32_t run(struct step_pace *pace, const uint64_t *ns, uint32_t n)
{
	uint64_t at_ns = pace->begin_ns ? pace->begin_ns : 1;
	uint32_t n_slow = 0;

	if (!pace->begin_ns)
		torsh_step_pace_take(pace, at_ns);
	for (uint32_t i = 0; i < n; i++) {
		at_ns += ns[i];
		torsh_step_pace_take(pace, at_ns);
		n_slow += pace->has_slow;
		pace->has_slow = false;
	}
	return n_slow;
}

static void a_slow_step_is_found_by_the_median_before_it(void **state)
{
	struct step_pace pace = {.slow_percent = 200};
	uint64_t ns[100];

	(void)state;
	/* 1, 2, ..., 99: the median of all before step i grows more slowly than the step. */
	for (uint64_t i = 0; i < 99; i++)
		ns[i] = 1000 + i;
	assert_int_equal(run(&pace, ns, 99), 0);
	ns[0] = 2 * 1049;
	assert_int_equal(run(&pace, ns, 1), 1);
	assert_int_equal(pace.slow.ordinal, 99);
	assert_int_equal(pace.slow.ns, 2 * 1049);
	assert_int_equal(pace.slow.median_ns, 1049);
	ns[0] = 2 * 1049 - 1;
	assert_int_equal(run(&pace, ns, 1), 0);
}

static void too_few_steps_judge_nothing(void **state)
{
	struct step_pace pace = {.slow_percent = 200};
	uint64_t ns[STEP_PACE_FEWEST] = {0};

	(void)state;
	for (uint32_t i = 0; i < STEP_PACE_FEWEST; i++)
		ns[i] = i % 2 ? 1000000 : 10;
	assert_int_equal(run(&pace, ns, STEP_PACE_FEWEST), 0);
	ns[0] = 1000000;
	assert_int_equal(run(&pace, ns, 1), 1);
}

static void only_the_last_steps_count(void **state)
{
	struct step_pace pace = {.slow_percent = 200};
	uint64_t slow[300], fast[300];

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		slow[i] = 1000;
		fast[i] = 100;
	}
	run(&pace, slow, 300);
	run(&pace, fast, STEP_PACE_STEPS);
	assert_int_equal(run(&pace, (uint64_t[]){200}, 1), 1);
	assert_int_equal(pace.slow.median_ns, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_step_is_found_by_the_median_before_it),
		cmocka_unit_test(too_few_steps_judge_nothing),
		cmocka_unit_test(only_the_last_steps_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
