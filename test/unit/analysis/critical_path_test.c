/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Critical paths of programs that are simulated: what a step consists of follows from their
 * numbers, and what it would take without a part is what a second simulation without it takes.
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
#include "test/unit/fixtures/random.h"

/* ---- one stream ------------------------------------------------------------------------------ */

struct device_program {
	uint64_t python_ns, launch_ns; /* of the host, for each kernel */
	uint64_t kernel_ns, way_ns; /* way: from a launch's begin to the kernel's at least */
	uint64_t return_ns; /* until a thread notices that the device has done its work */
	uint64_t n_kernels, sync_every; /* a step's; 0: no sync */
	bool is_free_of_sync;
};

/*
 * Simulate the steps from start_ns on, each with its mark. Returns when the last one is over and
 * the device has done its work.
 */
static uint64_t simulate_device(const struct device_program *program, uint64_t start_ns,
				size_t n_steps, size_t first)
{
	uint64_t host_ns = start_ns, device_ns = 0;

	for (size_t step = 0; step < n_steps; step++) {
		story_step(&story, host_ns, first + step);
		for (uint64_t i = 0; i < program->n_kernels; i++) {
			uint64_t begin_ns = host_ns + program->python_ns, launched_ns, from_ns;
			uint32_t correlation;

			launched_ns = begin_ns + program->launch_ns / 4;
			host_ns = begin_ns + program->launch_ns;
			correlation = story_launch(&story, launched_ns, host_ns);
			story_operator(&story, PATH_MAIN, "aten::relu", begin_ns, host_ns, false);
			from_ns = launched_ns + program->way_ns;
			device_ns = from_ns > device_ns ? from_ns : device_ns;
			story_kernel(&story, i % 2 ? "odd" : "even", correlation, 7, device_ns,
				     device_ns + program->kernel_ns);
			device_ns += program->kernel_ns;
			if (!program->sync_every || (i + 1) % program->sync_every)
				continue;
			from_ns = host_ns;
			if (device_ns + program->return_ns > host_ns && !program->is_free_of_sync)
				host_ns = device_ns + program->return_ns;
			story_sync(&story, "cudaStreamSynchronize_v3020", WAIT_FOR_STREAM, 7,
				   from_ns, host_ns);
		}
	}
	return device_ns > host_ns ? device_ns : host_ns;
}

static void record_device(const struct device_program *program)
{
	uint64_t end_ns;

	story_start(&story, true);
	end_ns = simulate_device(program, 1000000, PATH_STEPS - 1, 0);
	story_end(&story, end_ns);
	read_story();
	expect_sum();
	assert_true(critical.has_devices);
}

/* What the steps that were looked at take. */
static uint64_t again(struct device_program program)
{
	uint64_t end_ns;

	story.is_silent = true;
	end_ns = simulate_device(&program, 1000000, PATH_STEPS - 2, 0);
	story.is_silent = false;
	return end_ns - 1000000;
}

static void expect_gain(const struct critical_gain *gain, uint64_t without_ns)
{
	assert_true(gain->is_known);
	assert_int_equal(gain->ns, critical.window_ns - without_ns);
}

static void expect_gains(const struct device_program *program)
{
	struct device_program changed = *program;

	assert_int_equal(again(changed), critical.window_ns);
	changed.kernel_ns = 0;
	if (critical.kind_ns[CRITICAL_KERNELS])
		expect_gain(&critical.gains[CRITICAL_KERNELS], again(changed));
	changed = *program;
	changed.python_ns = 0;
	if (critical.kind_ns[CRITICAL_PYTHON])
		expect_gain(&critical.gains[CRITICAL_PYTHON], again(changed));
	changed.launch_ns = 0;
	expect_gain(&critical.without_host, again(changed));
	changed = *program;
	changed.is_free_of_sync = true;
	expect_gain(&critical.without_sync, again(changed));
}

static void a_program_that_launches_too_slowly_is_bound_by_launches(void **state)
{
	const struct device_program program = {.python_ns = 30000,
					       .launch_ns = 8000,
					       .kernel_ns = 4000,
					       .way_ns = 5000,
					       .return_ns = 1000,
					       .n_kernels = 20,
					       .sync_every = 20};

	(void)state;
	record_device(&program);
	expect_gains(&program);
	assert_non_null(bottleneck_of(BOTTLENECK_LAUNCHES));
	assert_null(bottleneck_of(BOTTLENECK_KERNELS));
	assert_null(bottleneck_of(BOTTLENECK_SYNCHRONISATION));
	/* The last kernel of a step ends after its launch: the path's end is the device's. */
	assert_int_equal(critical.kind_ns[CRITICAL_KERNELS], (PATH_STEPS - 2) * program.kernel_ns);
	assert_int_equal(critical.kind_ns[CRITICAL_SYNC], (PATH_STEPS - 2) * program.return_ns);
}

static void a_program_with_long_kernels_is_bound_by_them(void **state)
{
	const struct device_program program = {.python_ns = 2000,
					       .launch_ns = 4000,
					       .kernel_ns = 90000,
					       .way_ns = 5000,
					       .return_ns = 1000,
					       .n_kernels = 20,
					       .sync_every = 20};
	const struct bottleneck *found;

	(void)state;
	record_device(&program);
	expect_gains(&program);
	found = bottleneck_of(BOTTLENECK_KERNELS);
	assert_non_null(found);
	assert_int_equal(found->ns, (PATH_STEPS - 2) * 20 * program.kernel_ns);
	assert_null(bottleneck_of(BOTTLENECK_LAUNCHES));
	assert_null(bottleneck_of(BOTTLENECK_SYNCHRONISATION));
	assert_true(critical.lanes[torsh_critical_chain(&critical)].is_device);
}

static void a_program_that_waits_after_each_kernel_is_bound_by_that(void **state)
{
	const struct device_program program = {.python_ns = 20000,
					       .launch_ns = 8000,
					       .kernel_ns = 25000,
					       .way_ns = 5000,
					       .return_ns = 1000,
					       .n_kernels = 20,
					       .sync_every = 1};
	const struct bottleneck *found;

	(void)state;
	record_device(&program);
	expect_gains(&program);
	found = bottleneck_of(BOTTLENECK_SYNCHRONISATION);
	assert_non_null(found);
	assert_int_equal(found->gain_ns, critical.without_sync.ns);
	assert_true(found->share_pct > 40);
}

static void programs_of_any_numbers_gain_what_a_second_run_does(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (size_t round = 0; round < 200; round++) {
		struct device_program program = {.python_ns = 100 + random_below(&seed, 30000),
						 .launch_ns = 400 + random_below(&seed, 9000),
						 .kernel_ns = 100 + random_below(&seed, 40000),
						 .way_ns = 8000 + random_below(&seed, 5000),
						 .return_ns = 1 + random_below(&seed, 3000),
						 .n_kernels = 1 + random_below(&seed, 30)};

		program.sync_every = 1 + random_below(&seed, program.n_kernels);
		/* Each sync waits, and each step ends with one: the device is idle then. */
		program.n_kernels -= program.n_kernels % program.sync_every;
		record_device(&program);
		expect_gains(&program);
		forget(NULL);
	}
}

/* ---- what does not stand out ----------------------------------------------------------------- */

static void steps_of_many_operators_have_no_bottleneck(void **state)
{
	static const char *const names[] = {"aten::mm", "aten::add", "aten::relu", "aten::sum"};
	uint64_t at_ns = 1000000;

	(void)state;
	story_start(&story, true);
	for (size_t step = 0; step < PATH_STEPS - 1; step++) {
		story_step(&story, at_ns, step);
		for (size_t i = 0; i < 40; i++) {
			story_operator(&story, PATH_MAIN, names[i % 4], at_ns + 5000, at_ns + 50000,
				       false);
			at_ns += 50000;
		}
	}
	story_end(&story, at_ns);
	read_story();
	expect_sum();
	assert_int_equal(bottlenecks.n, 0);
	assert_int_equal(ns_of(CRITICAL_OPERATORS, "aten::mm"), (PATH_STEPS - 2) * 450000u);
}

static void a_recording_without_steps_has_no_path_and_says_so(void **state)
{
	(void)state;
	story_start(&story, true);
	story_operator(&story, PATH_MAIN, "aten::mm", 1000, 2000, false);
	read_story();
	assert_string_equal(critical.reason, "no steps are known");
	assert_int_equal(bottlenecks.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_program_that_launches_too_slowly_is_bound_by_launches,
					  forget),
		cmocka_unit_test_teardown(a_program_with_long_kernels_is_bound_by_them, forget),
		cmocka_unit_test_teardown(a_program_that_waits_after_each_kernel_is_bound_by_that,
					  forget),
		cmocka_unit_test_teardown(programs_of_any_numbers_gain_what_a_second_run_does,
					  forget),
		cmocka_unit_test_teardown(steps_of_many_operators_have_no_bottleneck, forget),
		cmocka_unit_test_teardown(a_recording_without_steps_has_no_path_and_says_so,
					  forget),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
