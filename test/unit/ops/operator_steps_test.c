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

/* One more than there are batches: the DataLoader reports its end then. */
static void a_batch_that_is_not_there_is_no_step(void **state)
{
	uint32_t record = 1;

	(void)state;
	for (uint64_t at = 1000; at < 5000; at += 1000) {
		fixture_op(&fixture, at, 0, record, "enumerate(DataLoader)#_Iter.__next__", NULL,
			   OP_USER, NONE);
		fixture_op_end(&fixture, at + 10, 0, record++);
		if (at == 4000)
			break;
		fixture_op(&fixture, at + 20, 0, record, "aten::mm", NULL, 0, NONE);
		fixture_op_end(&fixture, at + 30, 0, record++);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_DATALOADER);
	assert_int_equal(prepass.items[0].steps.n, 3);
	assert_int_equal(prepass.items[0].steps.items[2].end_ns, 4000);
}

/* Something else than PyTorch uses them. */
static void batches_without_operators_are_steps(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		fixture_op(&fixture, 1000 * i + 1000, 0, i + 1, "enumerate(DataLoader)#_Iter", NULL,
			   OP_USER, NONE);
		fixture_op_end(&fixture, 1000 * i + 1010, 0, i + 1);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_DATALOADER);
	assert_int_equal(prepass.items[0].steps.n, 3);
	assert_int_equal(prepass.items[0].steps.items[2].end_ns, 3010);
}

/* ---- forwards -------------------------------------------------------------------------------- */

static uint64_t now_ns;
static uint32_t last_record;

static void put_operator(const char *name, const char *inputs)
{
	fixture_op(&fixture, now_ns += 1000, 0, ++last_record, name, inputs, 0, NONE);
	fixture_op_end(&fixture, now_ns += 5000, 0, last_record);
}

/* A forward whose first operator has these inputs. */
static void put_forward(const char *name, const char *inputs)
{
	now_ns += 2000;
	put_operator(name, inputs);
	for (size_t i = 0; i < 3; i++) {
		put_operator("aten::mm", "float32[2,3];float32[3,3]");
		put_operator("aten::relu", "float32[2,3]");
	}
	put_operator("aten::argmax", "float32[2,3];1;false");
}

static void put_forwards(const char *name, const char *inputs, size_t n)
{
	while (n--)
		put_forward(name, inputs);
}

static void start_forwards(void)
{
	now_ns = 0;
	last_record = 0;
}

static void expect_kinds(const char *kinds)
{
	static const char letters[] = {
		[STEP_OF_NO_KIND] = '-', [STEP_PREFILL] = 'p', [STEP_DECODE] = 'd'};
	const struct steps *steps;

	collect(OPERATORS_BY_STEP, 0);
	steps = &prepass.items[0].steps;
	assert_int_equal(steps->rule, STEPS_BY_PERIOD);
	assert_int_equal(steps->n, strlen(kinds));
	for (size_t i = 0; i < steps->n; i++)
		assert_int_equal(letters[steps->items[i].kind], kinds[i]);
}

#define EMBEDDING "aten::embedding"
#define PROMPT "float32[9,3];int64[2,7];-1"
#define TOKEN "float32[9,3];int64[2,1];-1"

static void prompts_are_told_from_tokens(void **state)
{
	(void)state;
	start_forwards();
	for (size_t i = 0; i < 2; i++) {
		put_forward(EMBEDDING, PROMPT);
		put_forwards(EMBEDDING, TOKEN, 4);
	}
	put_forward(EMBEDDING, "float32[9,3];int64[1,5];-1"); /* another batch, another length */
	put_forwards(EMBEDDING, "float32[9,3];int64[1,1];-1", 2);
	expect_kinds("pddddpddddpdd");
}

static void sizes_of_activations_tell_them_too(void **state)
{
	(void)state;
	start_forwards();
	put_forward("aten::linear", "float32[2,7,3];float32[3,3];float32[3]");
	put_forwards("aten::linear", "float32[2,1,3];float32[3,3];float32[3]", 4);
	expect_kinds("pdddd");
}

/* Forwards before a prompt is seen, prompts that nothing follows, and what was not recorded. */
static void what_is_neither_has_no_kind(void **state)
{
	(void)state;
	start_forwards();
	put_forwards(EMBEDDING, TOKEN, 2);
	put_forwards(EMBEDDING, PROMPT, 3);
	put_forwards(EMBEDDING, NULL, 2);
	expect_kinds("-------");
}

/* The last batch of rows is of one row: that is no token. */
static void small_batches_are_no_tokens(void **state)
{
	(void)state;
	start_forwards();
	for (size_t i = 0; i < 2; i++) {
		put_forwards("aten::linear", "float32[64,9];float32[3,9];float32[3]", 3);
		put_forward("aten::linear", "float32[1,9];float32[3,9];float32[3]");
	}
	expect_kinds("--------");
}

static void growing_inputs_have_no_kind(void **state)
{
	static const char *const inputs[] = {
		"float32[9,3];int64[1,4];-1", "float32[9,3];int64[1,5];-1",
		"float32[9,3];int64[1,6];-1", "float32[9,3];int64[1,7];-1"};

	(void)state;
	start_forwards();
	for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++)
		put_forward(EMBEDDING, inputs[i]);
	expect_kinds("----");
}

static void expect_bursts(uint32_t n_bursts, uint32_t first, uint32_t last)
{
	const struct steps *steps;

	collect(OPERATORS_BY_STEP, 0);
	steps = &prepass.items[0].steps;
	assert_int_equal(steps->n_bursts, n_bursts);
	assert_int_equal(steps->items[0].burst, first);
	assert_int_equal(steps->items[steps->n - 1].burst, last);
}

static void pauses_separate_bursts(void **state)
{
	(void)state;
	start_forwards();
	for (size_t burst = 0; burst < 4; burst++) {
		put_forwards(EMBEDDING, PROMPT, 5);
		now_ns += UINT64_C(10000000);
	}
	put_operator("aten::ones", NULL);
	expect_bursts(4, 0, 3);
	assert_int_equal(prepass.items[0].steps.n, 20);
	/* The program goes on, but not the step. */
	assert_true(prepass.items[0].steps.items[19].end_ns < now_ns - 10000000);
}

/* Each forward waits for its input. */
static void regular_pauses_separate_nothing(void **state)
{
	(void)state;
	start_forwards();
	for (size_t i = 0; i < 8; i++) {
		put_forward(EMBEDDING, PROMPT);
		now_ns += UINT64_C(30000000);
	}
	expect_bursts(1, 0, 0);
}

static void short_pauses_separate_nothing(void **state)
{
	(void)state;
	start_forwards();
	for (size_t i = 0; i < 4; i++) {
		put_forwards(EMBEDDING, PROMPT, 4);
		now_ns += 9900000;
	}
	expect_bursts(1, 0, 0);
}

/* Two passes of each step: their numbers of operators alternate. */
static void irregular_steps_are_less_certain(void **state)
{
	uint32_t record = 1;

	(void)state;
	for (uint64_t i = 0; i < 22; i++) {
		uint64_t at = 1000 + i * 1000;

		for (uint64_t k = 0; k < 2 + i % 2 * 6; k++) {
			fixture_op(&fixture, at + 20 * k, 0, record, "aten::mm", NULL, 0, NONE);
			fixture_op_end(&fixture, at + 20 * k + 10, 0, record++);
		}
		fixture_op(&fixture, at + 300, 0, record, "MmBackward0", NULL, OP_BACKWARD, NONE);
		fixture_op_end(&fixture, at + 310, 0, record++);
	}
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_BACKWARD);
	assert_int_equal(prepass.items[0].steps.n, 22);
	assert_true(prepass.items[0].steps.certainty == .5);
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
		ON_A_TIMELINE(a_batch_that_is_not_there_is_no_step),
		ON_A_TIMELINE(batches_without_operators_are_steps),
		ON_A_TIMELINE(prompts_are_told_from_tokens),
		ON_A_TIMELINE(sizes_of_activations_tell_them_too),
		ON_A_TIMELINE(what_is_neither_has_no_kind),
		ON_A_TIMELINE(small_batches_are_no_tokens),
		ON_A_TIMELINE(growing_inputs_have_no_kind),
		ON_A_TIMELINE(pauses_separate_bursts),
		ON_A_TIMELINE(regular_pauses_separate_nothing),
		ON_A_TIMELINE(short_pauses_separate_nothing),
		ON_A_TIMELINE(irregular_steps_are_less_certain),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
