/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When a difference between two runs, or two sets of runs, is a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/compare/change.h"

static const struct change_rules rules = {.min_bytes = CHANGE_MIN_BYTES};

static struct change judge(enum change_unit unit, size_t n_before, size_t n_after,
			   const uint64_t *values)
{
	return torsh_change_judge(values, n_before, n_after, unit, &rules, 0);
}

static void bytes_below_the_least_are_no_change(void **state)
{
	(void)state;
	assert_false(judge(CHANGE_BYTES, 1, 1, (uint64_t[]){0, 1023}).is_change);
	assert_true(judge(CHANGE_BYTES, 1, 1, (uint64_t[]){0, 1024}).is_change);
	assert_true(judge(CHANGE_BYTES, 1, 1, (uint64_t[]){1024, 0}).is_change);
	assert_false(judge(CHANGE_BYTES, 1, 1, (uint64_t[]){10000000, 10100000}).is_change);
	assert_true(judge(CHANGE_BYTES, 1, 1, (uint64_t[]){10000000, 10100001}).is_change);
}

static void times_of_single_runs_may_differ_by_a_tenth(void **state)
{
	struct change change = judge(CHANGE_NS, 1, 1, (uint64_t[]){1000, 1100});

	(void)state;
	assert_false(change.is_change);
	assert_false(change.has_spread);
	assert_true(judge(CHANGE_NS, 1, 1, (uint64_t[]){1000, 1101}).is_change);
	assert_true(judge(CHANGE_NS, 1, 1, (uint64_t[]){1000, 899}).is_change);
}

static void several_runs_count_by_their_medians(void **state)
{
	struct change change =
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1010, 9, 1300, 1310, 1290});

	(void)state;
	assert_int_equal(change.before, 1000);
	assert_int_equal(change.after, 1300);
	assert_int_equal(change.spread, 1001);
	assert_false(change.is_change);
}

static void what_is_beyond_the_spread_is_a_change(void **state)
{
	(void)state;
	assert_true(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1010, 990, 1030, 1040, 1050}).is_change);
	assert_false(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1010, 960, 1030, 1040, 1050}).is_change);
	assert_false(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1000, 1000, 1020, 1020, 1020}).is_change);
}

static void runs_with_noise_only_are_the_same(void **state)
{
	uint64_t values[10], seed = 1;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 10; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			values[i] = 100000 + (seed >> 40) % 1500;
		}
		assert_false(judge(CHANGE_NS, 5, 5, values).is_change);
	}
}

static void percents_are_of_the_value_before(void **state)
{
	struct change change = judge(CHANGE_BYTES, 1, 1, (uint64_t[]){200000, 250000});

	(void)state;
	assert_true(torsh_change_percent(&change) == 25);
	change = judge(CHANGE_BYTES, 1, 1, (uint64_t[]){0, 5});
	assert_true(torsh_change_percent(&change) > 1e300);
	change = judge(CHANGE_BYTES, 1, 1, (uint64_t[]){0, 0});
	assert_true(torsh_change_percent(&change) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_below_the_least_are_no_change),
		cmocka_unit_test(times_of_single_runs_may_differ_by_a_tenth),
		cmocka_unit_test(several_runs_count_by_their_medians),
		cmocka_unit_test(what_is_beyond_the_spread_is_a_change),
		cmocka_unit_test(runs_with_noise_only_are_the_same),
		cmocka_unit_test(percents_are_of_the_value_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
