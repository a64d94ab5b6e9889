/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A series has the same number of points for a run of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/tables/series.h"

#define START 1000u

/* As the process state does: an event on each stamp. */
static void run(struct series *series, uint64_t n_stamps, uint64_t step)
{
	torsh_series_start(series, START, step);
	for (uint64_t stamp = START; stamp < START + n_stamps; stamp++) {
		if (stamp >= series->next_stamp)
			torsh_series_add(series, &(struct series_point){.stamp = stamp,
									.heap_bytes = stamp});
	}
}

static void a_full_series_covers_the_whole_run(void **state)
{
	static const uint64_t runs[] = {SERIES_POINTS, SERIES_POINTS + 1, 10 * SERIES_POINTS + 7,
					3000000};
	struct series series;

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		uint64_t last = START + runs[i] - 1;

		run(&series, runs[i], 1);
		assert_in_range(series.n_points, SERIES_POINTS / 2, SERIES_POINTS);
		assert_int_equal(series.points[0].stamp, START);
		for (uint32_t k = 1; k < series.n_points; k++) {
			assert_in_range(series.points[k].stamp - series.points[k - 1].stamp, 1,
					series.step);
			assert_int_equal(series.points[k].heap_bytes, series.points[k].stamp);
		}
		assert_in_range(last - series.points[series.n_points - 1].stamp, 0, series.step);
	}
}

static void a_distance_that_can_not_double_stays(void **state)
{
	struct series series;

	(void)state;
	torsh_series_start(&series, START, UINT64_MAX / 2 + 1);
	for (uint64_t i = 0; i < 2 * SERIES_POINTS; i++)
		torsh_series_add(&series, &(struct series_point){.stamp = START + i});
	assert_int_equal(series.step, UINT64_MAX / 2 + 1);
	assert_in_range(series.n_points, SERIES_POINTS / 2, SERIES_POINTS);
	torsh_series_add(&series, &(struct series_point){.stamp = UINT64_MAX - 1});
	assert_int_equal(series.next_stamp, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_series_covers_the_whole_run),
		cmocka_unit_test(a_distance_that_can_not_double_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
