/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Clocks and stragglers of jobs whose truth is known: each rank has a clock of its own. */
#include "test/unit/ranks/job_world.h"

#include <math.h>

/* Returns how far the job's idea of a rank's time is from the truth, at a true time. */
static double error_of(const struct job *job, const struct world *world, uint32_t rank,
		       int64_t true_ns)
{
	int64_t of = torsh_job_time(job, rank, shown(world, rank, true_ns));
	int64_t first = torsh_job_time(job, 0, shown(world, 0, true_ns));

	return fabs((double)(of - first));
}

static void offsets_are_within_their_error(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int trial = 0; trial < 200; trial++) {
		struct world world = {.n_ranks = 2 + (uint32_t)random_below(&random, 8),
				      .n_steps = 30,
				      .jitter_ns = random_below(&random, 3000000)};
		struct job *job;

		for (uint32_t i = 1; i < world.n_ranks; i++)
			world.offset_ns[i] =
				(int64_t)random_below(&random, 20000000000) - 10000000000;
		job = read_world(&world, &random);
		for (uint32_t i = 1; i < world.n_ranks; i++) {
			const struct job_clock *clock = &job->clocks[job->ranks[i].clock];

			assert_true(clock->source == CLOCK_BY_COLLECTIVES);
			assert_true(error_of(job, &world, i, STEP_NS * 3) <=
				    (double)clock->error_ns);
			assert_true(clock->error_ns <= world.jitter_ns + TRANSFER_NS + 1);
		}
		torsh_job_free(job);
	}
}

/* hw-native-sys/simpler #2099: a raw offset of 11.56 s where the ranks were 1.6 ms apart. */
static void a_raw_offset_is_no_skew(void **state)
{
	struct world world = {.n_ranks = 2,
			      .n_steps = 40,
			      .offset_ns = {0, 11560000000},
			      .late_rank = 1,
			      .late_ns = 1600000};
	uint64_t random = 7;
	struct job *job = read_world(&world, &random);

	(void)state;
	assert_true(job->clocks[1].error_ns < 1600000);
	for (size_t i = 0; i < job->n_verdicts; i++) {
		if (job->verdicts[i].is_judged)
			assert_true(job->verdicts[i].cost_ns < 3200000);
	}
	torsh_job_free(job);
}

static void drift_of_50_ppm_is_found(void **state)
{
	struct world world = {.n_ranks = 4,
			      .n_steps = 600,
			      .offset_ns = {0, 5000, -70000000, 1},
			      .drift = {0, 50e-6, -50e-6, 0},
			      .jitter_ns = 100000};
	uint64_t random = 11;
	struct job *job = read_world(&world, &random);

	(void)state;
	for (uint32_t i = 1; i < 3; i++) {
		const struct job_clock *clock = &job->clocks[job->ranks[i].clock];

		assert_true(clock->has_drift);
		assert_true(fabs(clock->drift + world.drift[i]) < 10e-6);
		for (uint32_t step = 0; step < world.n_steps; step += 50)
			assert_true(error_of(job, &world, i, STEP_NS * (int64_t)(step + 1)) <=
				    (double)clock->error_ns + 1);
	}
	assert_false(job->clocks[job->ranks[3].clock].has_drift);
	torsh_job_free(job);
}

static void nobody_is_late_within_the_error(void **state)
{
	struct world world = {.n_ranks = 2,
			      .n_steps = 100,
			      .offset_ns = {0, 3000000},
			      .late_rank = 1,
			      .late_ns = TRANSFER_NS / 4};
	uint64_t random = 2;
	struct job *job = read_world(&world, &random);

	(void)state;
	assert_int_equal(job->n_ties, job->n_verdicts);
	assert_int_equal(job->n_stragglers, 0);
	torsh_job_free(job);
}

static void jobs_without_a_straggler_have_none(void **state)
{
	uint64_t random = 21;
	size_t n = 0;

	(void)state;
	for (int trial = 0; trial < 400; trial++) {
		struct world world = {.n_ranks = 2 + (uint32_t)random_below(&random, 30),
				      .n_steps = 20 + (uint32_t)random_below(&random, 100),
				      .jitter_ns = STEP_NS / 2};
		struct job *job = read_world(&world, &random);

		n += job->n_stragglers;
		torsh_job_free(job);
	}
	/* By 3.5 standard errors about one rank in 4,000, of some 7,000 here. */
	assert_true(n <= 6);
}

/* Each cause in 20 jobs: what the late rank's time goes to, and what it has more of. */
static void planted_stragglers_are_found_with_their_cause(void **state)
{
	static const struct {
		enum fold_lead lead;
		enum job_cause_kind kind;
		uint64_t more_operators;
		enum fold_total more_of;
		uint64_t total, late_total;
	} kinds[] = {
		{FOLD_LEAD_gc_ns, CAUSE_GC, 0, 0, 0, 0},
		{FOLD_LEAD_data_ns, CAUSE_DATA_LOADING, 0, 0, 0, 0},
		{FOLD_LEAD_compute_ns, CAUSE_SLOW_COMPUTE, 0, 0, 0, 0},
		{FOLD_LEAD_python_ns, CAUSE_PYTHON, 0, 0, 0, 0},
		{FOLD_LEAD_compute_ns, CAUSE_MORE_COMPUTE, 50, 0, 0, 0},
		{FOLD_LEAD_python_ns, CAUSE_PAGE_FAULTS, 0, FOLD_TOTAL_minor_faults, 1000, 100000},
		{FOLD_LEAD_python_ns, CAUSE_ALLOCATION, 0, FOLD_TOTAL_allocs, 10000, 1000000},
		{FOLD_LEAD_compute_ns, CAUSE_CPU_WAIT, 0, FOLD_TOTAL_cpu_wait_ns, STEP_NS,
		 5 * (uint64_t)STEP_NS}};
	const size_t n_kinds = sizeof(kinds) / sizeof(*kinds);
	uint64_t random = 4;

	(void)state;
	for (size_t i = 0; i < 20 * n_kinds; i++) {
		struct world world = {.n_ranks = 3 + (uint32_t)random_below(&random, 60),
				      .n_steps = 30,
				      .jitter_ns = STEP_NS / 50,
				      .late_ns = STEP_NS / 8,
				      .late_by = kinds[i % n_kinds].lead,
				      .more_operators = kinds[i % n_kinds].more_operators,
				      .more_of = kinds[i % n_kinds].more_of,
				      .total = kinds[i % n_kinds].total,
				      .late_total = kinds[i % n_kinds].late_total};
		struct job *job;

		world.late_rank = (uint32_t)random_below(&random, world.n_ranks);
		job = read_world(&world, &random);
		assert_int_equal(job->n_stragglers, 1);
		assert_int_equal(job->ranks[job->stragglers[0].rank].number, world.late_rank);
		/* The first step is left out. */
		assert_int_equal(job->stragglers[0].times_last, world.n_steps - 1);
		assert_true(fabs((double)job->stragglers[0].cost_ns / (world.n_steps - 1) -
				 (double)world.late_ns) < STEP_NS / 50);
		assert_int_equal(job->stragglers[0].n_causes, 1);
		assert_int_equal(job->stragglers[0].causes[0].kind, kinds[i % n_kinds].kind);
		torsh_job_free(job);
	}
}

/* With all that could be a cause, and nobody late: 20 jobs for each, and not one straggler. */
static void unequal_ranks_that_are_not_late_have_no_cause(void **state)
{
	static const enum fold_total totals[] = {FOLD_TOTAL_minor_faults, FOLD_TOTAL_allocs,
						 FOLD_TOTAL_cpu_wait_ns};
	uint64_t random = 6;

	(void)state;
	for (size_t i = 0; i < 60; i++) {
		struct world world = {.n_ranks = 3 + (uint32_t)random_below(&random, 60),
				      .n_steps = 30,
				      .jitter_ns = STEP_NS / 50,
				      .more_of = totals[i % 3],
				      .total = 1000,
				      .late_total = 10 * (uint64_t)STEP_NS};
		struct job *job = read_world(&world, &random);

		assert_int_equal(job->n_stragglers, 0);
		torsh_job_free(job);
	}
}

/* What the late rank of 30 steps has in one count, and in a second one; and what it is late by. */
static void expect_cause(enum fold_total first, uint64_t first_ns, enum fold_total second,
			 uint64_t second_ns, enum job_cause_kind kind, const char *evidence)
{
	struct world world = {.n_ranks = 4,
			      .n_steps = 30,
			      .jitter_ns = STEP_NS / 50,
			      .late_ns = STEP_NS / 8,
			      .late_rank = 2,
			      .late_by = FOLD_LEAD_python_ns,
			      .counts = {{first, STEP_NS, first_ns}, {second, 7, second_ns}}};
	uint64_t random = 9;

	expect_one_cause(read_world(&world, &random), kind, evidence);
}

static void what_the_host_withholds_is_a_cause_if_it_explains_half(void **state)
{
	const uint64_t all_ns = 30 * (uint64_t)(STEP_NS / 8), most = all_ns * 9 / 10;

	(void)state;
	expect_cause(FOLD_TOTAL_cpu_stolen_ns, most, FOLD_TOTAL_cpu_throttled_periods, 0,
		     CAUSE_CPU_STOLEN,
		     "its CPUs were stolen for 438 ms instead of 100 ms in the whole run");
	expect_cause(FOLD_TOTAL_cpu_throttled_ns, most, FOLD_TOTAL_cpu_throttled_periods, 0,
		     CAUSE_CPU_THROTTLED,
		     "throttled for 438 ms instead of 100 ms in the whole run");
	expect_cause(FOLD_TOTAL_cpu_wait_ns, most, FOLD_TOTAL_cpu_stolen_ns, 0, CAUSE_CPU_WAIT,
		     "runnable without a CPU for 438 ms instead of 100 ms in the whole run");
	/* A throttled thread waits for a CPU, too, and somewhat longer. */
	expect_cause(FOLD_TOTAL_cpu_wait_ns, most, FOLD_TOTAL_cpu_throttled_ns, all_ns * 6 / 10,
		     CAUSE_CPU_THROTTLED, NULL);
	expect_cause(FOLD_TOTAL_cpu_wait_ns, most, FOLD_TOTAL_cpu_throttled_ns, all_ns * 3 / 10,
		     CAUSE_CPU_WAIT, NULL);
	expect_cause(FOLD_TOTAL_cpu_stolen_ns, all_ns * 3 / 10, FOLD_TOTAL_cpu_throttled_ns,
		     all_ns * 3 / 10, CAUSE_PYTHON, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_are_within_their_error),
		cmocka_unit_test(a_raw_offset_is_no_skew),
		cmocka_unit_test(drift_of_50_ppm_is_found),
		cmocka_unit_test(nobody_is_late_within_the_error),
		cmocka_unit_test(jobs_without_a_straggler_have_none),
		cmocka_unit_test(planted_stragglers_are_found_with_their_cause),
		cmocka_unit_test(what_the_host_withholds_is_a_cause_if_it_explains_half),
		cmocka_unit_test(unequal_ranks_that_are_not_late_have_no_cause),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
