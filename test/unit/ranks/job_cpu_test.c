/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CPU time as the cause of a rank's lateness: what counts is that between two collectives. */
#include "test/unit/ranks/job_world.h"

/* The late rank of 30 steps computes longer by an eighth of a step, of which it ran so much. */
static void expect_cpu_cause(struct rank_cpu others, struct rank_cpu late, enum job_cause_kind kind,
			     const char *evidence)
{
	const uint64_t most = 40 * (uint64_t)STEP_NS;
	struct world world = {.n_ranks = 4,
			      .n_steps = 30,
			      .jitter_ns = STEP_NS / 50,
			      .late_ns = STEP_NS / 8,
			      .late_rank = 2,
			      .late_by = FOLD_LEAD_compute_ns,
			      .cpu = others,
			      .late_cpu = late,
			      .more_of = FOLD_TOTAL_cpu_wait_ns,
			      .total = STEP_NS,
			      .late_total = most};
	uint64_t random = 10;

	/* In the whole run it has more of everything than it is late. */
	if (others.has_throttled) {
		world.counts[0].total = FOLD_TOTAL_cpu_throttled_ns;
		world.counts[0].late = most;
	}
	if (others.has_stolen) {
		world.counts[1].total = FOLD_TOTAL_cpu_stolen_ns;
		world.counts[1].late = most;
	}
	expect_one_cause(read_world(&world, &random), kind, evidence);
}

static struct rank_cpu timed(uint64_t ran_ns, uint64_t waited_ns)
{
	return (struct rank_cpu){.has_time = true, .ran_ns = ran_ns, .waited_ns = waited_ns};
}

static struct rank_cpu withheld(uint64_t waited_ns, uint64_t throttled_ns, uint64_t stolen_ns)
{
	struct rank_cpu cpu = timed(STEP_NS / 2, waited_ns);

	cpu.has_throttled = cpu.has_stolen = true;
	cpu.throttled_ns = throttled_ns;
	cpu.stolen_ns = stolen_ns;
	return cpu;
}

static void a_rank_that_computes_longer_on_a_full_machine_is_not_blamed_on_its_cpus(void **state)
{
	const uint64_t late_ns = STEP_NS / 8, ran_ns = STEP_NS / 2;

	(void)state;
	/* It waits as its share of the CPUs is, as the others do: one second in two. */
	expect_cpu_cause(timed(ran_ns, ran_ns), timed(ran_ns + late_ns, ran_ns + late_ns),
			 CAUSE_SLOW_COMPUTE, NULL);
	/* It waits for a CPU as long as it is late, and runs no longer than the others. */
	expect_cpu_cause(timed(ran_ns, 0), timed(ran_ns, late_ns), CAUSE_CPU_WAIT,
			 "runnable without a CPU for 12.5 ms instead of 0 ns between two "
			 "collectives");
	/* Who computes little gets a CPU at once; who computes more waits for its share. */
	expect_cpu_cause(timed(ran_ns / 10, 0), timed(ran_ns, late_ns), CAUSE_SLOW_COMPUTE, NULL);
	/* What it waited outside of these calls does not count. */
	expect_cpu_cause(timed(ran_ns, 0), timed(ran_ns + late_ns, 0), CAUSE_SLOW_COMPUTE, NULL);
	/* On both sides of a half. */
	expect_cpu_cause(timed(ran_ns, 0), timed(ran_ns, late_ns * 6 / 10), CAUSE_CPU_WAIT, NULL);
	expect_cpu_cause(timed(ran_ns, 0), timed(ran_ns, late_ns * 4 / 10), CAUSE_SLOW_COMPUTE,
			 NULL);
}

static void what_the_host_withholds_outside_of_the_calls_is_no_cause(void **state)
{
	const uint64_t late_ns = STEP_NS / 8;
	struct rank_cpu none = withheld(0, 0, 0), late;

	(void)state;
	expect_cpu_cause(none, none, CAUSE_SLOW_COMPUTE, NULL);
	expect_cpu_cause(none, withheld(0, late_ns, 0), CAUSE_CPU_THROTTLED,
			 "throttled for 12.5 ms instead of 0 ns between two collectives");
	expect_cpu_cause(
		none, withheld(0, 0, late_ns), CAUSE_CPU_STOLEN,
		"its CPUs were stolen for 12.5 ms instead of 0 ns between two collectives");
	/* On both sides of a half, also where a wait for a CPU has the same time. */
	expect_cpu_cause(none, withheld(0, late_ns * 6 / 10, 0), CAUSE_CPU_THROTTLED, NULL);
	expect_cpu_cause(none, withheld(0, late_ns * 4 / 10, 0), CAUSE_SLOW_COMPUTE, NULL);
	expect_cpu_cause(none, withheld(late_ns, late_ns * 6 / 10, 0), CAUSE_CPU_THROTTLED, NULL);
	expect_cpu_cause(none, withheld(late_ns, late_ns * 4 / 10, 0), CAUSE_CPU_WAIT, NULL);
	/* The others lost as much. */
	expect_cpu_cause(withheld(0, 0, 4 * late_ns), withheld(0, 0, 4 * late_ns),
			 CAUSE_SLOW_COMPUTE, NULL);
	/* With the same quota the one that runs longer is throttled longer. */
	late = withheld(0, 2 * late_ns, 0);
	late.ran_ns *= 2;
	expect_cpu_cause(withheld(0, late_ns, 0), late, CAUSE_SLOW_COMPUTE, NULL);
}

/* The same sums of both series. */
static void cpu_time_is_in_proportion_between_two_points(void **state)
{
	struct recorded_sum_point points[] = {{100, {0, 0}}, {200, {50, 1000}}, {400, {50, 1200}}};
	const struct recorded_sums sums = {points, 3, {true, true}};
	struct recorded_process process = {.cpu_time = sums, .cpu_supply = sums};
	const struct {
		uint64_t from_ns, to_ns, first_ns, second_ns;
	} cases[] = {{100, 200, 50, 1000}, {150, 200, 25, 500}, {200, 300, 0, 100},
		     {0, 1000, 50, 1200},  {0, 100, 0, 0},	{400, 900, 0, 0},
		     {190, 210, 5, 110},   {300, 200, 0, 0}};
	struct rank_cpu cpu;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cpu = torsh_rank_cpu(&process, cases[i].from_ns, cases[i].to_ns);
		assert_true(cpu.has_time && cpu.has_throttled && cpu.has_stolen);
		assert_int_equal(cpu.ran_ns, cases[i].first_ns);
		assert_int_equal(cpu.waited_ns, cases[i].second_ns);
		assert_int_equal(cpu.throttled_ns, cases[i].first_ns);
		assert_int_equal(cpu.stolen_ns, cases[i].second_ns);
	}
	process.cpu_supply.is_known[CPU_SUPPLY_THROTTLED] = false;
	cpu = torsh_rank_cpu(&process, 100, 200);
	assert_true(cpu.has_time && !cpu.has_throttled && cpu.has_stolen);
	cpu = torsh_rank_cpu(&(struct recorded_process){0}, 0, 100);
	assert_true(!cpu.ran_ns && !cpu.has_time && !cpu.has_throttled && !cpu.has_stolen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_rank_that_computes_longer_on_a_full_machine_is_not_blamed_on_its_cpus),
		cmocka_unit_test(what_the_host_withholds_outside_of_the_calls_is_no_cause),
		cmocka_unit_test(cpu_time_is_in_proportion_between_two_points),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
