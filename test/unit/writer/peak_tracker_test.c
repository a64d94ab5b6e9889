/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Peaks of a sum over time: of all of it, and of each stretch between two marks, against a list of
 * all its values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/peak_tracker.h"

#define N_CHANGES 100000u
#define MARK_EVERY 20u /* about */

/* The first moment of the highest value. */
struct highest {
	uint64_t bytes, stamp;
};

static void see(struct highest *highest, uint64_t bytes, uint64_t stamp)
{
	if (bytes > highest->bytes)
		*highest = (struct highest){.bytes = bytes, .stamp = stamp};
}

static void marks_have_the_highest_of_each_interval(void **state)
{
	struct peak_tracker tracker = {0};
	struct highest all = {0}, stretch = {0};
	uint64_t seed = 1, bytes = 0, found_bytes, found_stamp;

	(void)state;
	for (uint64_t stamp = 1; stamp <= N_CHANGES; stamp++) {
		int64_t change = (int64_t)random_below(&seed, 2000) - 1000;

		if (change < 0 && (uint64_t)-change > bytes)
			change = -(int64_t)bytes;
		bytes += (uint64_t)change;
		torsh_peak_tracker_change(&tracker, stamp, 0, change);
		see(&all, bytes, stamp);
		see(&stretch, bytes, stamp);
		if (random_below(&seed, MARK_EVERY))
			continue;
		torsh_peak_tracker_mark(&tracker, stamp, &found_bytes, &found_stamp);
		assert_int_equal(found_bytes, stretch.bytes);
		assert_int_equal(found_stamp, stretch.stamp);
		stretch = (struct highest){.bytes = bytes, .stamp = stamp};
	}
	torsh_peak_tracker_settle(&tracker);
	assert_int_equal(tracker.peak_bytes, all.bytes);
	assert_int_equal(tracker.peak_stamp, all.stamp);
}

static void a_stretch_without_changes_has_what_was_there(void **state)
{
	struct peak_tracker tracker = {0};
	uint64_t bytes, stamp;

	(void)state;
	torsh_peak_tracker_change(&tracker, 1, 1, 100);
	torsh_peak_tracker_change(&tracker, 2, -1, -60);
	torsh_peak_tracker_mark(&tracker, 3, &bytes, &stamp);
	assert_int_equal(bytes, 100);
	assert_int_equal(stamp, 1);
	torsh_peak_tracker_mark(&tracker, 4, &bytes, &stamp);
	assert_int_equal(bytes, 40);
	assert_int_equal(stamp, 3);
	assert_int_equal(tracker.peak_bytes, 100);
}

static void splits_and_marks_have_intervals_of_their_own(void **state)
{
	struct peak_tracker tracker = {0};
	struct highest marked = {0}, split = {0};
	uint64_t seed = 2, bytes = 0, found_bytes, found_stamp;

	(void)state;
	for (uint64_t stamp = 1; stamp <= N_CHANGES; stamp++) {
		int64_t change = (int64_t)random_below(&seed, 2000) - 1000;

		if (change < 0 && (uint64_t)-change > bytes)
			change = -(int64_t)bytes;
		bytes += (uint64_t)change;
		torsh_peak_tracker_change(&tracker, stamp, 0, change);
		see(&marked, bytes, stamp);
		see(&split, bytes, stamp);
		if (!random_below(&seed, MARK_EVERY)) {
			torsh_peak_tracker_mark(&tracker, stamp, &found_bytes, &found_stamp);
			assert_int_equal(found_bytes, marked.bytes);
			assert_int_equal(found_stamp, marked.stamp);
			marked = (struct highest){.bytes = bytes, .stamp = stamp};
		}
		if (!random_below(&seed, MARK_EVERY)) {
			assert_int_equal(torsh_peak_tracker_split(&tracker), split.bytes);
			split = (struct highest){.bytes = bytes, .stamp = stamp};
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_have_the_highest_of_each_interval),
		cmocka_unit_test(a_stretch_without_changes_has_what_was_there),
		cmocka_unit_test(splits_and_marks_have_intervals_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
