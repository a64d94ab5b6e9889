/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When a difference between two runs, or two sets of runs, is a change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/compare/change.h"
#include "tools/compare/spread.h"

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
	assert_true(change.spread > 1001);
	assert_false(change.is_change);
}

static void what_is_beyond_the_spread_is_a_change(void **state)
{
	(void)state;
	assert_true(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1010, 990, 1050, 1060, 1040}).is_change);
	assert_false(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1010, 990, 1030, 1040, 1020}).is_change);
	assert_false(
		judge(CHANGE_NS, 3, 3, (uint64_t[]){1000, 1000, 1000, 1020, 1020, 1020}).is_change);
}

/* By the table of Student's distribution, as every handbook has it. */
static void quantiles_are_those_of_the_handbooks(void **state)
{
	static const struct {
		double alpha;
		size_t n_free;
		double t;
	} known[] = {{0.05, 1, 12.706}, {0.05, 2, 4.303},  {0.05, 4, 2.776},
		     {0.01, 1, 63.657}, {0.01, 3, 5.841},  {0.01, 4, 4.604},
		     {0.01, 8, 3.355},	{0.001, 5, 6.869}, {0.001, 10, 4.587}};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_true(fabs(torsh_spread_quantile(known[i].alpha, known[i].n_free) -
				 known[i].t) < 0.0006);
}

/* Three and three runs, a standard deviation of 10 each, one figure: 4.604 * 10 * sqrt(2 / 3). */
static void the_spread_of_few_runs_is_students_margin(void **state)
{
	static const uint64_t runs[] = {990, 1000, 1010, 990, 1000, 1010};
	static const uint64_t many[] = {1000, 1030, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000,
					1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
	static const uint64_t alone[] = {5000, 5000, 9000};

	(void)state;
	assert_int_equal(torsh_spread(runs, 3, 3, 1), 38);
	assert_int_equal(torsh_spread(runs, 3, 3, 2), 46);
	assert_int_equal(torsh_spread(many, 10, 10, 1), 30);
	assert_int_equal(torsh_spread(alone, 2, 1, 1), 0);
}

/* About normal with a standard deviation of 5 %: the sum of twelve uniform numbers. */
static uint64_t noisy_time(uint64_t *seed)
{
	uint64_t sum = 0;

	for (int i = 0; i < 12; i++) {
		*seed = *seed * 6364136223846793005 + 1442695040888963407;
		sum += (*seed >> 40) % 5001;
	}
	return 100000 - 30000 + sum;
}

/*
 * Of a hundred tables one or two may show a change; the range alone calls 6 % of the rows of three
 * runs one.
 */
static void tables_of_equal_sets_have_no_change(void **state)
{
	enum { TABLES = 1000, ROWS = 40 };
	const struct change_rules together = {.min_bytes = CHANGE_MIN_BYTES, .n_figures = ROWS};
	uint64_t values[10], seed = 1;

	(void)state;
	for (size_t n = 2; n <= 5; n++) {
		int n_wrong = 0;

		for (int table = 0; table < TABLES; table++) {
			bool has_change = false;

			for (int row = 0; row < ROWS; row++) {
				for (size_t i = 0; i < 2 * n; i++)
					values[i] = noisy_time(&seed);
				has_change =
					torsh_change_judge(values, n, n, CHANGE_NS, &together, 0)
						.is_change ||
					has_change;
			}
			n_wrong += has_change;
		}
		print_message("%zu runs: %d of %d tables\n", n, n_wrong, TABLES);
		assert_true(n_wrong <= TABLES / 50);
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
		cmocka_unit_test(quantiles_are_those_of_the_handbooks),
		cmocka_unit_test(the_spread_of_few_runs_is_students_margin),
		cmocka_unit_test(tables_of_equal_sets_have_no_change),
		cmocka_unit_test(percents_are_of_the_value_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
