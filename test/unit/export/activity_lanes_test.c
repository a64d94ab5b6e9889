/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activities come out sorted, each on a free lane, however late and out of order they were
 * reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "test/unit/fixtures/random.h"
#include "tools/export/activity_lanes.h"

struct seen {
	size_t n_lanes, n_rows;
	uint64_t last_begin_ns, device_own[2]; /* by device */
	bool is_sorted;
};

static void see_lane(void *context, struct device_lane *lane)
{
	struct seen *seen = context;

	seen->n_lanes++;
	/* The first lane of a device identifies its other lanes. */
	assert_int_equal(lane->device_own, seen->device_own[lane->device]);
	if (!lane->device_own)
		lane->device_own = seen->device_own[lane->device] = lane->device + 7;
}

static void see_activity(void *context, const struct device_activity *activity,
			 const struct device_lane *lane, uint64_t begin_ns)
{
	struct seen *seen = context;

	assert_true(begin_ns >= activity->record.begin_ns &&
		    begin_ns - activity->record.begin_ns <= OVERLAP_NS);
	assert_int_equal(lane->last_ns, begin_ns + activity->record.duration_ns);
	assert_int_equal(lane->stream, activity->record.stream);
	seen->is_sorted = seen->is_sorted && activity->record.begin_ns >= seen->last_begin_ns;
	seen->last_begin_ns = activity->record.begin_ns;
	seen->n_rows++;
}

static const struct activity_lanes_visitor visitor = {.lane = see_lane, .activity = see_activity};
static struct recorded_process process = {.number = 1};

static void add(struct activity_lanes *rows, uint32_t device, uint64_t begin_ns,
		uint64_t duration_ns)
{
	const struct device_activity activity = {.process = &process,
						 .record = {.device = device,
							    .stream = 7,
							    .begin_ns = begin_ns,
							    .duration_ns = duration_ns}};

	torsh_activity_lanes_add(rows, &activity);
}

static void rows_come_out_sorted(void **state)
{
	enum { ROWS = 200000, DISORDER_NS = 5000000 };
	struct seen seen = {.is_sorted = true};
	struct activity_lanes *rows = torsh_activity_lanes_create(&visitor, &seen);
	uint64_t random = 11;

	(void)state;
	/*
	 * Within the window: an activity each 100 ns, and none is reported more than 50,000
	 * activities too late.
	 */
	for (uint64_t i = 0; i < ROWS; i++)
		add(rows, 0,
		    DISORDER_NS + 100 * i -
			    random_below(&random, 4) / 3 * random_below(&random, DISORDER_NS),
		    50);
	assert_int_equal(torsh_activity_lanes_destroy(rows), 0);
	assert_int_equal(seen.n_rows, ROWS);
	assert_true(seen.is_sorted);
}

static void what_comes_too_late_is_there_all_the_same(void **state)
{
	enum { ROWS = 100000 };
	struct seen seen = {.is_sorted = true};
	struct activity_lanes *rows = torsh_activity_lanes_create(&visitor, &seen);

	(void)state;
	for (uint64_t i = 0; i < ROWS; i++)
		add(rows, 0, 1000000 + 100 * i, 100);
	add(rows, 0, 500, 100);
	assert_int_equal(torsh_activity_lanes_destroy(rows), 0);
	assert_int_equal(seen.n_rows, ROWS + 1);
	assert_int_equal(seen.n_lanes, 2);
	assert_false(seen.is_sorted);
}

static void what_overlaps_too_many_others_is_counted(void **state)
{
	enum { MORE = 44 };
	struct seen seen = {.is_sorted = true};
	struct activity_lanes *rows = torsh_activity_lanes_create(&visitor, &seen);

	(void)state;
	for (uint32_t i = 0; i < DEVICE_LANES_MAX + MORE; i++)
		add(rows, 0, 100, 100 * OVERLAP_NS);
	add(rows, 1, 100, 100);
	assert_int_equal(torsh_activity_lanes_destroy(rows), MORE);
	assert_int_equal(seen.n_rows, DEVICE_LANES_MAX + 1);
	assert_int_equal(seen.n_lanes, DEVICE_LANES_MAX + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_out_sorted),
		cmocka_unit_test(what_comes_too_late_is_there_all_the_same),
		cmocka_unit_test(what_overlaps_too_many_others_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
