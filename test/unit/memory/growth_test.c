/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps as the writer marks them, and which survivors of steps are growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/memory/growth/growth.h"
#include "tools/writer/fold/step_marks.h"

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
	/*
	 * From when the data came on, and not in the last step, which isn't freed yet; now and then
	 * only.
	 */
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

static void few_steps_decide_nothing(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < GROWTH_STEPS_MIN; n++)
		assert_false(torsh_growth_is_steady(mask(0, n, 1), n));
	assert_false(torsh_growth_is_steady(UINT64_MAX, 65));
}

static int begin(struct step_marks *marks, uint32_t label, const char *name, uint64_t stamp)
{
	struct event event = {.id = EVENT_OP_BEGIN,
			      .op_begin = {.name = label, .scope = OP_USER, .record = label}};

	return torsh_step_marks_take(marks, &event, name, stamp);
}

static int end(struct step_marks *marks, uint32_t label, uint64_t stamp)
{
	struct event event = {.id = EVENT_OP_END, .op_end = {.record = label}};

	return torsh_step_marks_take(marks, &event, NULL, stamp);
}

static int mark(struct step_marks *marks, uint64_t number, uint64_t stamp)
{
	struct event event = {.id = EVENT_STEP, .step = {.number = number}};

	return torsh_step_marks_take(marks, &event, NULL, stamp);
}

static void better_rules_begin_anew(void **state)
{
	struct step_marks marks = {0};

	(void)state;
	assert_false(begin(&marks, 7, "Optimizer.step#SGD.step", 10));
	assert_true(end(&marks, 7, 14));
	assert_false(begin(&marks, 8, "Optimizer.step#Adam.step", 15) || end(&marks, 8, 16));
	assert_false(begin(&marks, 7, "Optimizer.step#SGD.step", 20));
	assert_false(begin(&marks, 9, "Optimizer.zero_grad#SGD.zero_grad", 21) ||
		     end(&marks, 9, 22));
	assert_true(end(&marks, 7, 23));
	assert_int_equal(marks.source, STEP_BY_OPTIMIZER);
	assert_int_equal(marks.n_steps, 2);
	assert_int_equal(marks.current, 2 + 1);
	assert_true(begin(&marks, 10, "ProfilerStep#3", 30));
	assert_false(begin(&marks, 7, "Optimizer.step#SGD.step", 35) || end(&marks, 7, 36));
	assert_int_equal(marks.source, STEP_BY_PROFILER);
	assert_int_equal(marks.n_steps, 1);
	assert_int_equal(marks.current, 3 + 1);
	assert_true(mark(&marks, 100, 40));
	assert_false(begin(&marks, 11, "ProfilerStep#4", 45));
	assert_true(mark(&marks, UINT64_MAX, 50));
	assert_int_equal(marks.source, STEP_BY_MARK);
	assert_int_equal(marks.n_steps, 2);
	assert_int_equal(torsh_step_marks_find(&marks, 39), UINT32_MAX);
	assert_int_equal(torsh_step_marks_find(&marks, 40), 0);
	assert_int_equal(torsh_step_marks_find(&marks, 49), 0);
	assert_int_equal(torsh_step_marks_find(&marks, 50), 1);
	assert_int_equal(torsh_step_marks_name_at(&marks, 39), 0);
	assert_int_equal(torsh_step_marks_name_at(&marks, 49), 100 + 1);
	assert_int_equal(torsh_step_marks_name_at(&marks, 50), 1 + 1);
	torsh_step_marks_destroy(&marks);
}

static void the_first_step_of_an_optimizer_begins_with_a_module(void **state)
{
	const struct event module = {.id = EVENT_RANGE_PUSH,
				     .range_push = {.source = RANGE_BY_MODULE}};
	struct step_marks marks = {0};

	(void)state;
	assert_int_equal(marks.current, 0);
	assert_false(torsh_step_marks_take(&marks, &module, NULL, 5));
	assert_int_equal(marks.current, STEP_PERHAPS_FIRST);
	begin(&marks, 7, "Optimizer.step#SGD.step", 10);
	end(&marks, 7, 14);
	assert_int_equal(torsh_step_marks_name_at(&marks, 4), 0);
	assert_int_equal(torsh_step_marks_name_at(&marks, 5), 0 + 1);
	assert_int_equal(torsh_step_marks_name_at(&marks, 14), 1 + 1);
	assert_int_equal(torsh_step_marks_final(STEP_PERHAPS_FIRST, 1), 0 + 1);
	assert_int_equal(torsh_step_marks_final(STEP_PERHAPS_FIRST, 0), 0);
	torsh_step_marks_destroy(&marks);
}

static void a_schedule_counts_for_itself(void **state)
{
	const struct event schedule = {.id = EVENT_SCHEDULE};
	const struct event step = {.id = EVENT_SCHEDULE_STEP,
				   .schedule_step = {.number = 9, .told_by = STEP_BY_OPTIMIZER}};
	struct step_marks marks = {0};

	(void)state;
	assert_false(torsh_step_marks_take(&marks, &schedule, NULL, 1));
	assert_false(mark(&marks, 3, 2) || begin(&marks, 7, "Optimizer.step#SGD.step", 3) ||
		     end(&marks, 7, 4));
	assert_true(torsh_step_marks_take(&marks, &step, NULL, 5));
	assert_int_equal(marks.current, 9 + 1);
	assert_int_equal(marks.n_steps, 1);
	torsh_step_marks_destroy(&marks);
}

static void any_number_of_steps_takes_the_same_room(void **state)
{
	const uint64_t n = 1000000;
	struct step_marks marks = {0};

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		torsh_step_marks_mark(&marks, STEP_BY_MARK, i, 100 * i);
	assert_int_equal(marks.n_steps, n);
	assert_in_range(marks.n, STEP_MARKS_MAX / 2, STEP_MARKS_MAX);
	for (uint32_t i = 0; i < marks.n; i++)
		assert_int_equal(marks.items[i].stamp, 100 * (uint64_t)i * marks.stride);
	assert_int_equal(marks.current, n);
	torsh_step_marks_destroy(&marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_every_stretch_leaves_behind_grows),
		cmocka_unit_test(caches_do_not_grow),
		cmocka_unit_test(what_is_replaced_at_random_does_not_grow),
		cmocka_unit_test(few_steps_decide_nothing),
		cmocka_unit_test(better_rules_begin_anew),
		cmocka_unit_test(the_first_step_of_an_optimizer_begins_with_a_module),
		cmocka_unit_test(a_schedule_counts_for_itself),
		cmocka_unit_test(any_number_of_steps_takes_the_same_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
