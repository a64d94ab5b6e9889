/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Critical paths of programs that are simulated, in which threads wait for each other: who ended
 * each wait, by the record of it or by times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/path_fixture.h"

struct thread_program {
	uint64_t before_ns, after_ns; /* of the main thread, around its wait */
	uint64_t wake_ns; /* of a thread, after what it waits for */
	uint64_t operator_ns, gap_ns; /* of the worker */
	uint64_t n_operators;
};

static uint64_t simulate_threads(const struct thread_program *program, uint64_t start_ns,
				 size_t n_steps, uint32_t kind)
{
	uint64_t main_ns = start_ns, idle_ns = start_ns;

	for (size_t step = 0; step < n_steps; step++) {
		uint64_t worker_ns, from_ns;

		story_step(&story, main_ns, step);
		story_operator(&story, PATH_MAIN, "aten::embedding", main_ns,
			       main_ns + program->before_ns, false);
		from_ns = main_ns += program->before_ns;
		worker_ns = main_ns + program->wake_ns;
		story_wait(&story, PATH_WORKER, kind, idle_ns, worker_ns);
		for (uint64_t i = 0; i < program->n_operators; i++) {
			worker_ns += i ? program->gap_ns : 0;
			story_operator(&story, PATH_WORKER, "MmBackward0", worker_ns,
				       worker_ns + program->operator_ns, true);
			worker_ns += program->operator_ns;
		}
		idle_ns = worker_ns;
		main_ns = worker_ns + program->wake_ns;
		story_wait(&story, PATH_MAIN, kind, from_ns, main_ns);
		story_operator(&story, PATH_MAIN, "aten::add_", main_ns,
			       main_ns + program->after_ns, false);
		main_ns += program->after_ns;
	}
	return main_ns;
}

static void a_chain_on_another_thread_is_found_while_the_first_one_waits(void **state)
{
	const struct thread_program program = {.before_ns = 100000,
					       .after_ns = 50000,
					       .wake_ns = 60000,
					       .operator_ns = 200000,
					       .gap_ns = 10000,
					       .n_operators = 10};
	struct thread_program changed = program;
	const struct bottleneck *found;
	uint64_t n = PATH_STEPS - 2, end_ns, without_ns;

	(void)state;
	story_start(&story, true);
	end_ns = simulate_threads(&program, 1000000, PATH_STEPS - 1, THREAD_WAIT_CONDITION);
	story_end(&story, end_ns);
	read_story();
	expect_sum();
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "MmBackward0"), n * 10 * program.operator_ns);
	assert_int_equal(ns_of(CRITICAL_PYTHON, NULL), n * 9 * program.gap_ns);
	assert_int_equal(ns_of(CRITICAL_LOCKS, NULL), n * 2 * program.wake_ns);
	assert_int_equal(critical.n_guessed, 2 * n);
	assert_int_equal(critical.lanes[torsh_critical_chain(&critical)].thread, PATH_WORKER);
	found = bottleneck_of(BOTTLENECK_OPERATOR);
	assert_non_null(found);
	story.is_silent = true;
	changed.operator_ns = 0;
	without_ns = simulate_threads(&changed, 0, n, 0);
	story.is_silent = false;
	assert_int_equal(found->gain_ns, critical.window_ns - without_ns);
}

/* A second thread computes longer than the main one is away: only a part of its time counts. */
static void work_beside_a_longer_chain_gains_nothing(void **state)
{
	uint64_t at_ns = 1000000;

	(void)state;
	story_start(&story, true);
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		story_step(&story, at_ns, step);
		story_operator(&story, PATH_WORKER, "aten::sort", at_ns + 1000, at_ns + 700000,
			       false);
		story_operator(&story, PATH_MAIN, "aten::mm", at_ns, at_ns + 900000, false);
		story_wait(&story, PATH_MAIN, THREAD_WAIT_SLEEP, at_ns + 900000, at_ns + 1000000);
		at_ns += 1000000;
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::sort"), 0);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), (PATH_STEPS - 2) * 900000u);
	assert_int_equal(critical.gains[CRITICAL_SLEEP].ns, (PATH_STEPS - 2) * 100000u);
	assert_int_equal(critical.n_guessed, 0);
}

static void a_wait_that_nothing_explains_stays_a_wait(void **state)
{
	uint64_t at_ns = 1000000;

	(void)state;
	story_start(&story, true);
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		story_step(&story, at_ns, step);
		/* A thread that sleeps long before the wait's end is no reason for that. */
		story_operator(&story, PATH_WORKER, "aten::sort", at_ns + 200000, at_ns + 400000,
			       false);
		story_wait(&story, PATH_WORKER, THREAD_WAIT_SLEEP, at_ns + 400000, at_ns + 4100000);
		story_wait(&story, PATH_MAIN, THREAD_WAIT_MUTEX, at_ns + 100000, at_ns + 3000000);
		at_ns += 4000000;
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
	assert_int_equal(ns_of(CRITICAL_LOCKS, NULL), (PATH_STEPS - 2) * 2900000u);
	assert_int_equal(critical.gains[CRITICAL_LOCKS].ns, (PATH_STEPS - 2) * 2900000u);
	assert_non_null(bottleneck_of(BOTTLENECK_LOCKS));
	assert_int_equal(critical.n_guessed, 0);
}

/*
 * The worker's chain is short in the main thread's wait, and the main thread got its processor
 * late: by more than a guess would believe.
 */
static void simulate_late(uint32_t kind, bool is_recorded, uint64_t late_ns)
{
	uint64_t at_ns = 1000000;

	story_start(&story, true);
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		uint64_t work_ns = at_ns + 100000, woken_ns = work_ns + 4000000;

		story_step(&story, at_ns, step);
		if (is_recorded)
			story_woken(&story, PATH_WORKER, kind, at_ns - 100000, work_ns, PATH_MAIN,
				    at_ns + 60000);
		else
			story_wait(&story, PATH_WORKER, kind, at_ns - 100000, work_ns);
		story_operator(&story, PATH_WORKER, "aten::mm", work_ns, woken_ns - 10000, false);
		if (is_recorded)
			story_woken(&story, PATH_MAIN, kind, at_ns + 70000, woken_ns + late_ns,
				    PATH_WORKER, woken_ns);
		else
			story_wait(&story, PATH_MAIN, kind, at_ns + 70000, woken_ns + late_ns);
		story_wait(&story, PATH_WORKER, THREAD_WAIT_SLEEP, woken_ns + 20000,
			   woken_ns + late_ns + 100000);
		at_ns = woken_ns + late_ns + 300000;
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
}

static void a_recorded_waker_is_believed_however_late_the_thread_went_on(void **state)
{
	uint64_t n = PATH_STEPS - 2;

	(void)state;
	for (uint64_t late_ns = 1000; late_ns < 100000000; late_ns *= 10) {
		simulate_late(THREAD_WAIT_SEMAPHORE, true, late_ns);
		assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), n * 3990000);
		/* From the post to the work, and to when the main thread went on. */
		assert_int_equal(ns_of(CRITICAL_LOCKS, NULL), n * (40000 + late_ns));
		assert_int_equal(critical.n_guessed, 0);
		forget(NULL);
	}
}

static void a_thread_that_wrote_what_another_one_read_is_followed(void **state)
{
	static const uint32_t kinds[] = {THREAD_WAIT_READ, THREAD_WAIT_POLL};
	uint64_t n = PATH_STEPS - 2;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		simulate_late(kinds[i], true, 1000);
		assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), n * 3990000);
		assert_int_equal(ns_of(CRITICAL_IO, NULL), n * 41000);
		forget(NULL);
		/* Without a record it may have been anybody, outside of the process, too. */
		simulate_late(kinds[i], false, 1000);
		assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), 0);
		assert_int_equal(critical.n_guessed, 0);
		forget(NULL);
	}
}

static void without_one_the_only_other_thread_is_taken_within_half_of_the_wait(void **state)
{
	uint64_t n = PATH_STEPS - 2;

	(void)state;
	simulate_late(THREAD_WAIT_SEMAPHORE, false, 3000000);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), n * 3990000);
	assert_true(critical.n_guessed >= n);
	forget(NULL);
	/* After as long it waited for time. */
	simulate_late(THREAD_WAIT_SEMAPHORE, false, 5000000);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), 0);
	assert_true(ns_of(CRITICAL_LOCKS, NULL) >= n * 9000000);
}

/* Times alone would take the operator that ended right before; the record has another thread. */
static void a_recorded_waker_wins_over_a_guess(void **state)
{
	uint64_t at_ns = 1000000, n = PATH_STEPS - 2;

	(void)state;
	story_start(&story, true);
	fixture_thread(&story.fixture, 102, "other");
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		story_step(&story, at_ns, step);
		story_operator(&story, PATH_WORKER, "aten::sort", at_ns + 100000, at_ns + 2990000,
			       false);
		story_operator(&story, PATH_WORKER + 1, "aten::mm", at_ns + 10000, at_ns + 2000000,
			       false);
		story_wait(&story, PATH_WORKER + 1, THREAD_WAIT_SLEEP, at_ns + 2000000,
			   at_ns + 3500000);
		story_woken(&story, PATH_MAIN, THREAD_WAIT_SEMAPHORE, at_ns + 10000,
			    at_ns + 3000000, PATH_WORKER + 1, at_ns + 2000000);
		at_ns += 4000000;
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::sort"), 0);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), n * 1990000);
	assert_int_equal(ns_of(CRITICAL_LOCKS, NULL), n * 1000000);
	assert_int_equal(critical.n_guessed, 0);
}

/* A thread of which nothing else is known, itself, and none that there is. */
static void a_recorded_waker_that_leads_nowhere_is_none(void **state)
{
	static const uint32_t wakers[] = {PATH_WORKER, PATH_MAIN, 77};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint64_t at_ns = 1000000;

		story_start(&story, true);
		for (size_t step = 0; step < PATH_STEPS - 1; step++) {
			story_step(&story, at_ns, step);
			story_woken(&story, PATH_MAIN, THREAD_WAIT_SEMAPHORE, at_ns + 10000,
				    at_ns + 3000000, wakers[i], at_ns + 2000000);
			at_ns += 4000000;
		}
		story_end(&story, at_ns);
		read_story();
		expect_sum();
		assert_int_equal(ns_of(CRITICAL_LOCKS, NULL), (PATH_STEPS - 2) * 2990000u);
		forget(NULL);
	}
}

/* Without records of waits, autograd's thread shows what the main one waits for. */
static void the_backward_pass_is_followed_without_records_of_waits(void **state)
{
	uint64_t at_ns = 1000000, n = PATH_STEPS - 2;

	(void)state;
	story_start(&story, false);
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		story_step(&story, at_ns, step);
		story_operator(&story, PATH_MAIN, "aten::mm", at_ns, at_ns + 300000, false);
		story_operator(&story, PATH_WORKER, "MmBackward0", at_ns + 320000, at_ns + 620000,
			       true);
		story_operator(&story, PATH_WORKER, "SumBackward0", at_ns + 630000, at_ns + 730000,
			       true);
		story_operator(&story, PATH_MAIN, "aten::add_", at_ns + 750000, at_ns + 800000,
			       false);
		at_ns += 800000;
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "MmBackward0"), n * 300000);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "SumBackward0"), n * 100000);
	assert_int_equal(ns_of(CRITICAL_PYTHON, NULL), n * 50000);
	assert_int_equal(ns_of(CRITICAL_UNKNOWN, NULL) + ns_of(CRITICAL_LOCKS, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			a_chain_on_another_thread_is_found_while_the_first_one_waits, forget),
		cmocka_unit_test_teardown(work_beside_a_longer_chain_gains_nothing, forget),
		cmocka_unit_test_teardown(a_wait_that_nothing_explains_stays_a_wait, forget),
		cmocka_unit_test_teardown(
			a_recorded_waker_is_believed_however_late_the_thread_went_on, forget),
		cmocka_unit_test_teardown(a_thread_that_wrote_what_another_one_read_is_followed,
					  forget),
		cmocka_unit_test_teardown(
			without_one_the_only_other_thread_is_taken_within_half_of_the_wait, forget),
		cmocka_unit_test_teardown(a_recorded_waker_wins_over_a_guess, forget),
		cmocka_unit_test_teardown(a_recorded_waker_that_leads_nowhere_is_none, forget),
		cmocka_unit_test_teardown(the_backward_pass_is_followed_without_records_of_waits,
					  forget),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
