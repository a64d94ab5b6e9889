/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps by operators, marks and repetition, on small fixed timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/operators_fixture.h"

static void steps_end_with_the_optimizer(void **state)
{
	(void)state;
	put_step(1000, 1, 0);
	put_step(2000, 11, 2);
	put_step(3000, 21, 4);
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_OPTIMIZER);
	assert_int_equal(prepass.items[0].steps.n, 3);
	assert_int_equal(prepass.items[0].steps.items[0].start_ns, 1000);
	assert_int_equal(prepass.items[0].steps.items[1].start_ns, 1050);
	assert_int_equal(prepass.items[0].steps.items[1].end_ns, 2050);
	assert_int_equal(operators.n, 3);
	for (size_t i = 0; i < operators.n; i++)
		assert_int_equal(operators.items[i].calls, 6);
}

static void marks_of_the_program_are_the_best_steps(void **state)
{
	struct event event = {.id = EVENT_STEP};

	(void)state;
	event.step.number = 7;
	fixture_event(&fixture, 900, 0, &event);
	put_step(1000, 1, 0);
	event.step.number = 8;
	fixture_event(&fixture, 1900, 0, &event);
	put_step(2000, 11, 2);
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_USER);
	assert_int_equal(prepass.items[0].steps.items[0].number, 7);
	assert_int_equal(prepass.items[0].steps.items[0].end_ns, 1900);
	assert_int_equal(prepass.items[0].steps.items[1].number, 8);
	assert_int_equal(prepass.items[0].steps.items[1].end_ns, 2050);
}

static void profiler_steps_have_their_numbers(void **state)
{
	(void)state;
	fixture_op(&fixture, 1000, 0, 1, "ProfilerStep#3", NULL, OP_USER, NONE);
	fixture_op_end(&fixture, 1500, 0, 1);
	fixture_op(&fixture, 1500, 0, 2, "ProfilerStep#4", NULL, OP_USER, NONE);
	fixture_op_end(&fixture, 1900, 0, 2);
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_PROFILER);
	assert_int_equal(prepass.items[0].steps.items[1].number, 4);
	assert_int_equal(torsh_steps_at(&prepass.items[0].steps, 1499), 0);
	assert_int_equal(torsh_steps_at(&prepass.items[0].steps, 1500), 1);
	assert_int_equal(torsh_steps_at(&prepass.items[0].steps, 1900), STEP_NONE);
}

static void a_sequence_that_repeats_itself_is_a_step(void **state)
{
	static const char *const warm_up[] = {"aten::randn", "aten::mul", "aten::randn",
					      "aten::add"};
	static const char *const step[] = {"aten::mm", "aten::relu", "aten::mm", "aten::sum",
					   "aten::add"};
	uint64_t at = 100;
	uint32_t record = 1;

	(void)state;
	for (size_t i = 0; i < 4; i++, at += 10, record++) {
		fixture_op(&fixture, at, 0, record, warm_up[i], NULL, 0, NONE);
		fixture_op_end(&fixture, at + 5, 0, record);
	}
	for (size_t i = 0; i < 40; i++, at += 10, record++) {
		fixture_op(&fixture, at, 0, record, step[i % 5], NULL, 0, NONE);
		fixture_op_end(&fixture, at + 5, 0, record);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_PERIOD);
	assert_int_equal(prepass.items[0].steps.n, 8);
	assert_int_equal(prepass.items[0].steps.items[0].start_ns, 140);
	assert_int_equal(prepass.items[0].steps.items[1].start_ns, 190);
}

static void what_never_repeats_has_no_steps(void **state)
{
	char name[32];

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "op%u", i);
		fixture_op(&fixture, 100 + i * 10, 0, i, name, NULL, 0, NONE);
		fixture_op_end(&fixture, 105 + i * 10, 0, i);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_NONE);
	assert_int_equal(operators.n, 1);
	assert_null(operators.items[0].name);
}

/* From one batch to the next, the first from the first on. */
static void batches_mark_steps_without_an_optimizer(void **state)
{
	uint32_t record = 1;

	(void)state;
	for (uint64_t at = 1000; at < 4000; at += 1000) {
		fixture_op(&fixture, at, 0, record, "enumerate(DataLoader)#_Iter.__next__", NULL,
			   OP_USER, NONE);
		fixture_op_end(&fixture, at + 10, 0, record++);
		fixture_op(&fixture, at + 20, 0, record, "aten::mm", NULL, 0, NONE);
		fixture_op_end(&fixture, at + 30, 0, record++);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_DATALOADER);
	assert_int_equal(prepass.items[0].steps.n, 3);
	assert_int_equal(prepass.items[0].steps.items[1].start_ns, 2000);
	assert_int_equal(prepass.items[0].steps.items[1].end_ns, 3000);
}

/* However many nodes each has. */
static void backward_passes_mark_steps_without_batches(void **state)
{
	uint32_t record = 1;

	(void)state;
	for (uint64_t at = 1000; at < 4000; at += 1000) {
		fixture_op(&fixture, at, 0, record, "aten::mm", NULL, 0, NONE);
		fixture_op_end(&fixture, at + 10, 0, record++);
		for (uint64_t node = 0; node < at / 1000; node++) {
			fixture_op(&fixture, at + 100 + 20 * node, 0, record, "MmBackward0", NULL,
				   OP_BACKWARD, NONE);
			fixture_op_end(&fixture, at + 110 + 20 * node, 0, record++);
		}
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_BACKWARD);
	assert_int_equal(prepass.items[0].steps.n, 3);
	assert_int_equal(prepass.items[0].steps.items[1].start_ns, 2100);
	assert_int_equal(prepass.items[0].steps.items[1].end_ns, 3100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_TIMELINE(steps_end_with_the_optimizer),
		ON_A_TIMELINE(marks_of_the_program_are_the_best_steps),
		ON_A_TIMELINE(profiler_steps_have_their_numbers),
		ON_A_TIMELINE(batches_mark_steps_without_an_optimizer),
		ON_A_TIMELINE(backward_passes_mark_steps_without_batches),
		ON_A_TIMELINE(a_sequence_that_repeats_itself_is_a_step),
		ON_A_TIMELINE(what_never_repeats_has_no_steps),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
