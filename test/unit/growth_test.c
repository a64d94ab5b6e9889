/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps as the writer tells them, and what of the survivors of steps is growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/profile/growth.h"
#include "tools/writer/step_marks.h"

static uint64_t mask(uint32_t from, uint32_t to, uint32_t every)
{
	uint64_t parts = 0;

	for (uint32_t i = from; i < to; i += every)
		parts |= UINT64_C(1) << i;
	return parts;
}

static void what_every_stretch_leaves_behind_grows(void **state)
{
	(void)state;
	for (uint32_t n = GROWTH_STEPS_MIN; n <= 64; n++)
		assert_true(torsh_growth_is_steady(mask(0, n, 1), n));
	/* From when the data came on, and not in the last step, which isn't freed yet; now and then only. */
	assert_true(torsh_growth_is_steady(mask(10, 64, 1), 64));
	assert_true(torsh_growth_is_steady(mask(0, 63, 1), 64));
	assert_true(torsh_growth_is_steady(mask(3, 64, 10), 64));
}

static void caches_do_not_grow(void **state)
{
	(void)state;
	/* That warm up: at once, slowly, with a late comer. */
	assert_false(torsh_growth_is_steady(mask(0, 1, 1), 64));
	assert_false(torsh_growth_is_steady(mask(0, 40, 1), 64));
	assert_false(torsh_growth_is_steady(mask(0, 40, 1) | mask(60, 61, 1), 64));
	/* That hold the last ones; that were filled in the middle. */
	assert_false(torsh_growth_is_steady(mask(40, 64, 1), 64));
	assert_false(torsh_growth_is_steady(mask(63, 64, 1), 64));
	assert_false(torsh_growth_is_steady(mask(20, 30, 1), 64));
	assert_false(torsh_growth_is_steady(0, 64));
}

static void what_is_replaced_at_random_does_not_grow(void **state)
{
	(void)state;
	assert_true(torsh_growth_is_replaced(0, 16));
	assert_true(torsh_growth_is_replaced(24, 100));
	assert_false(torsh_growth_is_replaced(25, 100));
	assert_false(torsh_growth_is_replaced(100, 100));
	assert_false(torsh_growth_is_replaced(0, 15));
	/* Older recordings don't count them. */
	assert_false(torsh_growth_is_replaced(0, 0));
}

static void few_steps_tell_nothing(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < GROWTH_STEPS_MIN; n++)
		assert_false(torsh_growth_is_steady(mask(0, n, 1), n));
	assert_false(torsh_growth_is_steady(UINT64_MAX, 65));
}

static void better_rules_begin_anew(void **state)
{
	struct step_marks marks = {0};

	(void)state;
	torsh_steps_scope(&marks, 7, "Optimizer.step#SGD.step", 10);
	torsh_steps_scope(&marks, 8, "Optimizer.step#Adam.step", 15);
	torsh_steps_scope(&marks, 7, "Optimizer.step#SGD.step", 20);
	torsh_steps_scope(&marks, 9, "Optimizer.zero_grad#SGD.zero_grad", 21);
	assert_int_equal(marks.rule, STEPS_BY_OPTIMIZER);
	assert_int_equal(marks.n_steps, 2);
	torsh_steps_scope(&marks, 10, "ProfilerStep#3", 30);
	torsh_steps_scope(&marks, 7, "Optimizer.step#SGD.step", 35);
	assert_int_equal(marks.rule, STEPS_BY_PROFILER);
	assert_int_equal(marks.n_steps, 1);
	torsh_steps_mark(&marks, STEPS_BY_USER, 40);
	torsh_steps_scope(&marks, 11, "ProfilerStep#4", 45);
	torsh_steps_mark(&marks, STEPS_BY_USER, 50);
	assert_int_equal(marks.rule, STEPS_BY_USER);
	assert_int_equal(marks.n_steps, 2);
	assert_int_equal(torsh_steps_find(&marks, 39), UINT32_MAX);
	assert_int_equal(torsh_steps_find(&marks, 40), 0);
	assert_int_equal(torsh_steps_find(&marks, 49), 0);
	assert_int_equal(torsh_steps_find(&marks, 50), 1);
	torsh_steps_destroy(&marks);
}

static void any_number_of_steps_takes_the_same_room(void **state)
{
	const uint64_t n = 1000000;
	struct step_marks marks = {0};

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		torsh_steps_mark(&marks, STEPS_BY_USER, 100 * i);
	assert_int_equal(marks.n_steps, n);
	assert_in_range(marks.n, STEP_MARKS_MAX / 2, STEP_MARKS_MAX);
	for (uint32_t i = 0; i < marks.n; i++)
		assert_int_equal(marks.stamps[i], 100 * (uint64_t)i * marks.stride);
	torsh_steps_destroy(&marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_every_stretch_leaves_behind_grows),
		cmocka_unit_test(caches_do_not_grow),
		cmocka_unit_test(what_is_replaced_at_random_does_not_grow),
		cmocka_unit_test(few_steps_tell_nothing),
		cmocka_unit_test(better_rules_begin_anew),
		cmocka_unit_test(any_number_of_steps_takes_the_same_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
