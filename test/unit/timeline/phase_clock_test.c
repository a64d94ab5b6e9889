/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each nanosecond of a step is in one phase, or in none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/timeline/phase_clock.h"
#include "tools/timeline/span_phase.h"

#define N_STEPS 3u

/* With a gap before the first and between the last two. */
static struct step items[N_STEPS] = {
	{.number = 0, .start_ns = 10, .end_ns = 20},
	{.number = 1, .start_ns = 20, .end_ns = 40},
	{.number = 2, .start_ns = 50, .end_ns = 60},
};
static const struct steps steps = {.items = items, .n = N_STEPS};

static struct span operator_of(uint64_t ordinal, enum span_phase phase, uint64_t start_ns,
			       uint64_t end_ns)
{
	return (struct span){.kind = SPAN_OPERATOR,
			     .phase = phase,
			     .ordinal = ordinal,
			     .start_ns = start_ns,
			     .end_ns = end_ns};
}

static void a_call_counts_in_each_step_that_it_is_in(void **state)
{
	struct phase_step spent[N_STEPS] = {0};
	struct span span = operator_of(0, PHASE_BACKWARD, 5, 55);
	struct phase_clock clock;

	(void)state;
	torsh_phase_clock_start(&clock, &steps, spent);
	torsh_phase_clock_begin(&clock, &span);
	torsh_phase_clock_end(&clock, &span);
	torsh_phase_clock_stop(&clock);
	for (size_t i = 0; i < N_STEPS; i++) {
		uint64_t in_it_ns = i == 2 ? 5 : items[i].end_ns - items[i].start_ns;

		assert_int_equal(spent[i].phase_ns[PHASE_BACKWARD], in_it_ns);
		assert_int_equal(spent[i].other_ns, items[i].end_ns - items[i].start_ns - in_it_ns);
	}
}

static void of_several_threads_the_last_that_began_counts(void **state)
{
	struct phase_step spent[N_STEPS] = {0};
	struct span forward = operator_of(0, PHASE_FORWARD, 10, 16),
		    backward = operator_of(1, PHASE_BACKWARD, 12, 18);
	struct phase_clock clock;

	(void)state;
	torsh_phase_clock_start(&clock, &steps, spent);
	torsh_phase_clock_begin(&clock, &forward);
	torsh_phase_clock_begin(&clock, &backward);
	torsh_phase_clock_end(&clock, &forward);
	torsh_phase_clock_end(&clock, &backward);
	torsh_phase_clock_stop(&clock);
	assert_int_equal(spent[0].phase_ns[PHASE_FORWARD], 2);
	assert_int_equal(spent[0].phase_ns[PHASE_BACKWARD], 6);
	assert_int_equal(spent[0].other_ns, 2);
}

static void what_comes_before_the_first_module_is_setup(void **state)
{
	const struct recorded_process process = {.setup_end_ns = 10};
	struct span whole = {.kind = SPAN_OPERATOR,
			     .scope = OP_USER,
			     .process = &process,
			     .start_ns = 1},
		    inside = whole;

	(void)state;
	torsh_span_set_phase(&whole, NULL);
	assert_int_equal(whole.phase, PHASE_SETUP);
	torsh_span_set_phase(&inside, &whole);
	assert_int_equal(inside.phase, PHASE_SETUP);
	/* A scope around a whole program implies nothing about what comes later. */
	inside.start_ns = 10;
	torsh_span_set_phase(&inside, &whole);
	assert_int_equal(inside.phase, PHASE_FORWARD);
}

static void what_fsdp_does_around_backward_is_backward(void **state)
{
	(void)state;
	assert_true(torsh_name_traits("FSDP::post_backward_reduce") & NAME_BACKWARD);
	assert_true(torsh_name_traits("FSDP::pre_backward") & NAME_BACKWARD);
	assert_false(torsh_name_traits("FSDP::pre_forward") & NAME_BACKWARD);
	assert_false(torsh_name_traits("my_backward") & NAME_BACKWARD);
}

static void spans_without_a_phase_change_nothing(void **state)
{
	struct phase_step spent[N_STEPS] = {0};
	struct span scope = operator_of(0, PHASE_FORWARD, 10, 20),
		    outlives = operator_of(1, PHASE_FORWARD, 10, 20);
	struct phase_clock clock;

	(void)state;
	scope.scope = OP_USER;
	outlives.is_async = true;
	torsh_phase_clock_start(&clock, &steps, spent);
	torsh_phase_clock_begin(&clock, &scope);
	torsh_phase_clock_begin(&clock, &outlives);
	torsh_phase_clock_end(&clock, &outlives);
	torsh_phase_clock_end(&clock, &scope);
	torsh_phase_clock_stop(&clock);
	assert_int_equal(spent[0].other_ns, 10);
}

#define N_CALLS 40u
#define LAST_NS 70u

/* The phase of each nanosecond, looked up anew. */
static void look_up(const struct span *spans, uint64_t at_ns, struct phase_step *spent)
{
	const struct span *last = NULL;

	for (size_t i = 0; i < N_CALLS; i++) {
		if (spans[i].start_ns <= at_ns && at_ns < spans[i].end_ns)
			last = &spans[i];
	}
	for (size_t i = 0; i < N_STEPS; i++) {
		if (at_ns < items[i].start_ns || at_ns >= items[i].end_ns)
			continue;
		if (last)
			spent[i].phase_ns[last->phase]++;
		else
			spent[i].other_ns++;
	}
}

static int compare_starts(const void *a, const void *b)
{
	return (int)((const struct span *)a)->start_ns - (int)((const struct span *)b)->start_ns;
}

static void emit(struct phase_clock *clock, const struct span *spans)
{
	for (uint64_t at_ns = 0; at_ns <= 2 * (uint64_t)LAST_NS; at_ns++) {
		for (size_t i = 0; i < N_CALLS; i++) {
			if (spans[i].end_ns == at_ns && spans[i].start_ns < at_ns)
				torsh_phase_clock_end(clock, &spans[i]);
		}
		for (size_t i = 0; i < N_CALLS; i++) {
			if (spans[i].start_ns == at_ns)
				torsh_phase_clock_begin(clock, &spans[i]);
		}
	}
}

static void random_calls_match_a_replay_of_each_moment(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct phase_step spent[N_STEPS] = {0}, expected[N_STEPS] = {0};
		struct span spans[N_CALLS];
		struct phase_clock clock;

		for (size_t i = 0; i < N_CALLS; i++) {
			uint64_t start_ns = random_below(&seed, LAST_NS);

			spans[i] = operator_of(
				0, random_below(&seed, N_PHASES), start_ns,
				start_ns + 1 + random_below(&seed, (uint64_t)round % 30 + 1));
		}
		qsort(spans, N_CALLS, sizeof(*spans), compare_starts);
		for (size_t i = 0; i < N_CALLS; i++)
			spans[i].ordinal = i;
		for (uint64_t at_ns = 0; at_ns < LAST_NS; at_ns++)
			look_up(spans, at_ns, expected);
		torsh_phase_clock_start(&clock, &steps, spent);
		emit(&clock, spans);
		torsh_phase_clock_stop(&clock);
		assert_memory_equal(spent, expected, sizeof(spent));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_counts_in_each_step_that_it_is_in),
		cmocka_unit_test(of_several_threads_the_last_that_began_counts),
		cmocka_unit_test(what_comes_before_the_first_module_is_setup),
		cmocka_unit_test(what_fsdp_does_around_backward_is_backward),
		cmocka_unit_test(spans_without_a_phase_change_nothing),
		cmocka_unit_test(random_calls_match_a_replay_of_each_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
