/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What lies in a window: a time, and moments with a first and a last time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/timeline/window.h"

#define MS UINT64_C(1000000)
#define EDGE (2 * WINDOW_EDGE_NS) /* more than the times of blocks are wrong by */

static struct window_span spans[] = {
	{10 * MS, 20 * MS}, {30 * MS, 40 * MS}, {50 * MS, WINDOW_OPEN}};
static const struct time_window window = {.spans = spans, .n = 3};

static enum window_part part(uint64_t n, uint64_t first_ms, uint64_t last_ms)
{
	return torsh_window_part(&window, n, first_ms * MS, last_ms * MS);
}

static void a_span_has_its_begin_and_not_its_end(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 60; at++) {
		bool is_in = (at >= 10 && at < 20) || (at >= 30 && at < 40) || at >= 50;

		assert_int_equal(torsh_window_has(&window, at * MS), is_in);
		if (at % 10)
			assert_int_equal(part(1, at, at), is_in ? WINDOW_HAS_ALL : WINDOW_HAS_NONE);
	}
}

static void blocks_of_one_span_or_of_none_are_decided(void **state)
{
	(void)state;
	assert_int_equal(part(100, 11, 19), WINDOW_HAS_ALL);
	assert_int_equal(part(100, 60, 1000000), WINDOW_HAS_ALL);
	assert_int_equal(part(100, 0, 9), WINDOW_HAS_NONE);
	assert_int_equal(part(100, 21, 29), WINDOW_HAS_NONE);
}

static void blocks_around_an_edge_are_not(void **state)
{
	(void)state;
	assert_int_equal(part(100, 9, 11), WINDOW_HAS_SOME);
	assert_int_equal(part(100, 19, 21), WINDOW_HAS_SOME);
	assert_int_equal(part(100, 15, 35), WINDOW_HAS_SOME);
	assert_int_equal(part(100, 25, 45), WINDOW_HAS_SOME);
	assert_int_equal(part(2, 9, 11), WINDOW_HAS_SOME);
}

static void two_blocks_are_all_there_are(void **state)
{
	(void)state;
	assert_int_equal(part(2, 15, 35), WINDOW_HAS_ALL);
	assert_int_equal(part(2, 25, 45), WINDOW_HAS_NONE);
	assert_int_equal(part(3, 15, 35), WINDOW_HAS_SOME);
}

/* Clocks that were read apart don't decide what was first. */
static void a_time_at_an_edge_decides_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint64_t edges[] = {spans[i].from_ns, spans[i].to_ns};

		for (size_t k = 0; k < 2; k++) {
			uint64_t at = edges[k];

			assert_int_equal(torsh_window_part(&window, 1, at, at), WINDOW_HAS_SOME);
			assert_int_equal(torsh_window_part(&window, 1, at - 1000, at - 1000),
					 WINDOW_HAS_SOME);
			assert_int_equal(torsh_window_part(&window, 1, at - EDGE, at - EDGE),
					 k ? WINDOW_HAS_ALL : WINDOW_HAS_NONE);
			assert_int_equal(torsh_window_part(&window, 1, at + EDGE, at + EDGE),
					 k ? WINDOW_HAS_NONE : WINDOW_HAS_ALL);
		}
	}
}

static void exact_times_decide_at_edges(void **state)
{
	const struct time_window exact = {.spans = spans, .n = 3, .is_exact = true};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint64_t from = spans[i].from_ns, to = spans[i].to_ns;

		assert_int_equal(torsh_window_part(&exact, 1, from - 1, from - 1), WINDOW_HAS_NONE);
		assert_int_equal(torsh_window_part(&exact, 9, from, to - 1), WINDOW_HAS_ALL);
		assert_int_equal(torsh_window_part(&exact, 9, from - 1, from), WINDOW_HAS_SOME);
		assert_int_equal(torsh_window_part(&exact, 9, to - 1, to), WINDOW_HAS_SOME);
		assert_int_equal(torsh_window_part(&exact, 1, to, to), WINDOW_HAS_NONE);
	}
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
		cmocka_unit_test(blocks_of_one_span_or_of_none_are_decided),
		cmocka_unit_test(blocks_around_an_edge_are_not),
		cmocka_unit_test(two_blocks_are_all_there_are),
		cmocka_unit_test(a_time_at_an_edge_decides_nothing),
		cmocka_unit_test(exact_times_decide_at_edges),
		cmocka_unit_test(an_empty_window_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
