/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What lies in a window: a time, and moments of which the first and the last one are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/timeline/window.h"

static struct window_span spans[] = {{10, 20}, {30, 40}, {50, WINDOW_OPEN}};
static const struct time_window window = {.spans = spans, .n = 3};

static void a_span_has_its_begin_and_not_its_end(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 60; at++) {
		bool is_in = (at >= 10 && at < 20) || (at >= 30 && at < 40) || at >= 50;

		assert_int_equal(torsh_window_has(&window, at), is_in);
		assert_int_equal(torsh_window_part(&window, 1, at, at),
				 is_in ? WINDOW_HAS_ALL : WINDOW_HAS_NONE);
	}
}

static void moments_of_one_span_or_of_none_are_decided(void **state)
{
	(void)state;
	assert_int_equal(torsh_window_part(&window, 100, 10, 19), WINDOW_HAS_ALL);
	assert_int_equal(torsh_window_part(&window, 100, 60, UINT64_MAX - 1), WINDOW_HAS_ALL);
	assert_int_equal(torsh_window_part(&window, 100, 0, 9), WINDOW_HAS_NONE);
	assert_int_equal(torsh_window_part(&window, 100, 20, 29), WINDOW_HAS_NONE);
}

static void moments_around_an_edge_are_not(void **state)
{
	(void)state;
	assert_int_equal(torsh_window_part(&window, 100, 9, 10), WINDOW_HAS_SOME);
	assert_int_equal(torsh_window_part(&window, 100, 19, 20), WINDOW_HAS_SOME);
	assert_int_equal(torsh_window_part(&window, 100, 15, 35), WINDOW_HAS_SOME);
	assert_int_equal(torsh_window_part(&window, 100, 25, 45), WINDOW_HAS_SOME);
	assert_int_equal(torsh_window_part(&window, 2, 9, 10), WINDOW_HAS_SOME);
}

static void two_moments_are_all_there_are(void **state)
{
	(void)state;
	assert_int_equal(torsh_window_part(&window, 2, 15, 35), WINDOW_HAS_ALL);
	assert_int_equal(torsh_window_part(&window, 2, 25, 45), WINDOW_HAS_NONE);
	assert_int_equal(torsh_window_part(&window, 3, 15, 35), WINDOW_HAS_SOME);
}

static void an_empty_window_has_nothing(void **state)
{
	static const struct time_window empty;

	(void)state;
	assert_false(torsh_window_has(&empty, 0));
	assert_int_equal(torsh_window_part(&empty, 3, 0, 10), WINDOW_HAS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_span_has_its_begin_and_not_its_end),
		cmocka_unit_test(moments_of_one_span_or_of_none_are_decided),
		cmocka_unit_test(moments_around_an_edge_are_not),
		cmocka_unit_test(two_moments_are_all_there_are),
		cmocka_unit_test(an_empty_window_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
