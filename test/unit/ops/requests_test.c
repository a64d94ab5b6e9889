/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests as steps: which thread works on which one, on small fixed timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/operators_fixture.h"
#include "tools/ops/step_totals.h"

#define DOMAIN "torsh.request"
#define UNNUMBERED UINT64_MAX

static uint32_t last_record;

static void push(uint64_t at_ns, uint32_t thread, const char *name, uint64_t number)
{
	struct event event = {.id = EVENT_RANGE_PUSH};

	event.range_push.name = fixture_label(&fixture, name);
	event.range_push.domain = fixture_label(&fixture, DOMAIN);
	event.range_push.source = RANGE_BY_TORSH;
	event.range_push.payload_type = number == UNNUMBERED ? PAYLOAD_NONE : PAYLOAD_U64;
	event.range_push.payload = number == UNNUMBERED ? 0 : number;
	fixture_event(&fixture, at_ns, thread, &event);
}

static void pop(uint64_t at_ns, uint32_t thread)
{
	fixture_pop(&fixture, at_ns, thread, DOMAIN, RANGE_BY_TORSH);
}

static void put_operator(uint64_t at_ns, uint32_t thread)
{
	fixture_op(&fixture, at_ns, thread, ++last_record, "aten::mm", NULL, 0, NONE);
	fixture_op_end(&fixture, at_ns + 10, thread, last_record);
}

static const struct steps *find_steps(size_t n)
{
	const struct steps *steps;

	collect(OPERATORS_BY_STEP, 0);
	steps = &prepass.items[0].steps;
	assert_int_equal(steps->rule, STEPS_BY_REQUESTS);
	assert_int_equal(steps->n, n);
	assert_true(steps->certainty == 1);
	return steps;
}

static void expect_step(const struct steps *steps, size_t i, uint64_t start_ns, uint64_t end_ns,
			const char *name)
{
	assert_int_equal(steps->items[i].number, i);
	assert_int_equal(steps->items[i].start_ns, start_ns);
	assert_int_equal(steps->items[i].end_ns, end_ns);
	assert_string_equal(torsh_timeline_label(prepass.items[0].process, steps->items[i].name),
			    name);
}

/* The calls and the time of forward of each step, and that phases add up. */
static void expect_totals(const uint64_t *calls, const uint64_t *forward_ns)
{
	const struct steps *steps = &prepass.items[0].steps;
	struct step_totals totals;

	torsh_step_totals_collect(&totals, recording, recording->processes[0], &prepass);
	for (size_t i = 0; i < steps->n; i++) {
		const struct phase_step *spent = &totals.items[i].spent;

		assert_int_equal(totals.items[i].calls, calls[i]);
		assert_int_equal(spent->phase_ns[PHASE_FORWARD], forward_ns[i]);
		assert_int_equal(spent->phase_ns[PHASE_FORWARD] + spent->other_ns,
				 steps->items[i].end_ns - steps->items[i].start_ns);
	}
	torsh_step_totals_free(&totals);
}

static void requests_follow_each_other(void **state)
{
	static const uint64_t calls[] = {2, 1}, forward_ns[] = {20, 10};
	const struct steps *steps;

	(void)state;
	push(1000, 0, "GET /a", UNNUMBERED);
	put_operator(1010, 0);
	put_operator(1030, 0);
	pop(1100, 0);
	put_operator(1150, 0);
	push(1200, 0, "GET /b", UNNUMBERED);
	put_operator(1210, 0);
	pop(1300, 0);
	steps = find_steps(2);
	expect_step(steps, 0, 1000, 1100, "GET /a");
	expect_step(steps, 1, 1200, 1300, "GET /b");
	assert_int_equal(torsh_steps_of(steps, 1150, 0), STEP_NONE);
	assert_int_equal(torsh_steps_at(steps, 1150), STEP_NONE);
	expect_totals(calls, forward_ns);
}

static void each_thread_works_on_its_own(void **state)
{
	static const uint64_t calls[] = {2, 1}, forward_ns[] = {20, 10};
	const struct steps *steps;

	(void)state;
	push(1000, 0, "GET /a", UNNUMBERED);
	put_operator(1010, 0);
	push(1050, 1, "GET /b", UNNUMBERED);
	put_operator(1060, 1);
	put_operator(1080, 0);
	pop(1100, 0);
	pop(1200, 1);
	steps = find_steps(2);
	expect_step(steps, 0, 1000, 1100, "GET /a");
	expect_step(steps, 1, 1050, 1200, "GET /b");
	assert_int_equal(torsh_steps_of(steps, 1085, 0), 0);
	assert_int_equal(torsh_steps_of(steps, 1085, 1), 1);
	assert_int_equal(torsh_steps_of(steps, 1150, 0), STEP_NONE);
	assert_int_equal(torsh_steps_at(steps, 1085), 1);
	assert_int_equal(torsh_steps_at(steps, 1040), 0);
	expect_totals(calls, forward_ns);
}

/* Coroutines take turns on one thread: each has a range for each turn. */
static void requests_have_many_ranges(void **state)
{
	static const uint64_t calls[] = {2, 1}, forward_ns[] = {20, 10};
	const struct steps *steps;

	(void)state;
	push(1000, 0, "GET /a", 1);
	put_operator(1010, 0);
	pop(1030, 0);
	push(1030, 0, "GET /b", 2);
	put_operator(1035, 0);
	pop(1050, 0);
	push(1060, 0, "GET /a", 1);
	put_operator(1070, 0);
	pop(1090, 0);
	push(1090, 0, "GET /b", 2);
	pop(1100, 0);
	steps = find_steps(2);
	expect_step(steps, 0, 1000, 1090, "GET /a");
	expect_step(steps, 1, 1030, 1100, "GET /b");
	assert_int_equal(torsh_steps_of(steps, 1055, 0), STEP_NONE);
	expect_totals(calls, forward_ns);
}

/* A handler reports what its middleware has reported already. */
static void inner_ranges_are_part_of_the_outer_one(void **state)
{
	const struct steps *steps;

	(void)state;
	push(1000, 0, "GET /a", UNNUMBERED);
	push(1010, 0, "predict", UNNUMBERED);
	put_operator(1020, 0);
	pop(1050, 0);
	pop(1100, 0);
	steps = find_steps(1);
	expect_step(steps, 0, 1000, 1100, "GET /a");
}

/* Any thread may end these; they overlap on the thread that began them. */
static void of_started_ranges_the_last_one_counts(void **state)
{
	static const uint64_t calls[] = {1, 1}, forward_ns[] = {10, 10};
	struct event event = {.id = EVENT_RANGE_START};
	const struct steps *steps;

	(void)state;
	event.range_start.name = fixture_label(&fixture, "GET /a");
	event.range_start.domain = fixture_label(&fixture, DOMAIN);
	event.range_start.source = RANGE_BY_TORSH;
	for (uint64_t i = 0; i < 2; i++) {
		event.range_start.range = i + 1;
		fixture_event(&fixture, 1000 + 20 * i, 0, &event);
	}
	put_operator(1030, 0);
	event = (struct event){.id = EVENT_RANGE_END, .range_end = {.range = 2}};
	fixture_event(&fixture, 1050, 0, &event);
	put_operator(1060, 0);
	event.range_end.range = 1;
	fixture_event(&fixture, 1090, 1, &event);
	steps = find_steps(2);
	expect_step(steps, 0, 1000, 1090, "GET /a");
	expect_step(steps, 1, 1020, 1050, "GET /a");
	expect_totals(calls, forward_ns);
}

/* A pool of threads runs what is served: of one request it is clear which. */
static void other_threads_work_on_the_only_one(void **state)
{
	static const uint64_t calls[] = {2, 0}, forward_ns[] = {20, 0};
	const struct steps *steps;

	(void)state;
	put_operator(900, 1);
	push(1000, 0, "GET /a", 1);
	pop(1010, 0);
	put_operator(1020, 1);
	put_operator(1040, 1);
	push(1060, 0, "GET /b", 2);
	put_operator(1070, 1); /* of either */
	pop(1090, 0);
	push(1100, 0, "GET /a", 1);
	pop(1110, 0);
	put_operator(1200, 1);
	steps = find_steps(2);
	expect_step(steps, 0, 1000, 1110, "GET /a");
	expect_step(steps, 1, 1060, 1090, "GET /b");
	assert_int_equal(torsh_steps_of(steps, 1075, 1), STEP_NONE);
	assert_int_equal(torsh_steps_of(steps, 1200, 1), STEP_NONE);
	/* Between two operators of one request its thread goes on with it. */
	assert_int_equal(torsh_steps_of(steps, 1035, 1), 0);
	expect_totals(calls, forward_ns);
}

static void chosen_requests_keep_their_threads(void **state)
{
	struct steps_choice choice = {.is_some = true, .first = 1, .last = 1};
	struct steps *steps;

	(void)state;
	push(1000, 0, "GET /a", UNNUMBERED);
	push(1050, 1, "GET /b", UNNUMBERED);
	pop(1100, 0);
	pop(1200, 1);
	find_steps(2);
	steps = &prepass.items[0].steps;
	torsh_steps_choose(steps, &choice);
	assert_int_equal(steps->n, 1);
	assert_int_equal(torsh_steps_of(steps, 1060, 0), STEP_NONE);
	assert_int_equal(torsh_steps_of(steps, 1060, 1), 0);
	assert_true(torsh_steps_have(steps, 1150));
	assert_false(torsh_steps_have(steps, 1020));
}

/* Other domains and other sources are no requests. */
static void other_ranges_are_no_requests(void **state)
{
	(void)state;
	fixture_push(&fixture, 1000, 0, "GET /a", "other", RANGE_BY_TORSH);
	fixture_pop(&fixture, 1100, 0, "other", RANGE_BY_TORSH);
	fixture_push(&fixture, 1200, 0, "GET /a", DOMAIN, RANGE_BY_NVTX);
	fixture_pop(&fixture, 1300, 0, DOMAIN, RANGE_BY_NVTX);
	collect(OPERATORS_BY_STEP, 0);
	assert_int_equal(prepass.items[0].steps.rule, STEPS_BY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_TIMELINE(requests_follow_each_other),
		ON_A_TIMELINE(each_thread_works_on_its_own),
		ON_A_TIMELINE(requests_have_many_ranges),
		ON_A_TIMELINE(inner_ranges_are_part_of_the_outer_one),
		ON_A_TIMELINE(of_started_ranges_the_last_one_counts),
		ON_A_TIMELINE(other_threads_work_on_the_only_one),
		ON_A_TIMELINE(chosen_requests_keep_their_threads),
		ON_A_TIMELINE(other_ranges_are_no_requests),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
