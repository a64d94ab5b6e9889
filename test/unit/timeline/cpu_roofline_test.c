/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Operators on the CPU beside what a core can do: by a recording whose counters were chosen, and
 * numbers worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/operators_fixture.h"
#include "tools/report/counters/cpu_roofline.h"

#define ALL ((1u << N_CPU_COUNTERS) - 1)
#define HARDWARE ((1u << N_CPU_HARDWARE_COUNTERS) - 1)
#define MAIN_NS 990 /* of processor time on the first thread */
#define ADDMM "float32[32];float32[4,64];float32[64,32];1;1" /* 2 x 4 x 64 x 32 FLOPs */

static void put_mode(uint32_t has)
{
	fixture_event(&fixture, 1, 0,
		      &(struct event){
			      .id = EVENT_CPU_COUNTER_MODE,
			      .cpu_counter_mode = {.has = has,
						   .hardware = has & HARDWARE ? CPU_COUNTERS_BY_READ
									      : CPU_COUNTERS_NONE,
						   .error = has & HARDWARE ? 0 : ENOENT,
						   .paranoid = 2}});
}

static void put_counts(uint64_t at, uint32_t thread, uint32_t has, uint64_t ns, uint64_t cycles,
		       uint64_t llc)
{
	fixture_event(&fixture, at, thread,
		      &(struct event){.id = EVENT_CPU_COUNTS,
				      .cpu_counts = {.has = has, .task_clock_ns = ns}});
	if (!(has & HARDWARE))
		return;
	fixture_event(&fixture, at, thread,
		      &(struct event){.id = EVENT_CPU_HARDWARE_COUNTS,
				      .cpu_hardware_counts = {.cycles = cycles,
							      .instructions = cycles,
							      .llc_misses = llc,
							      .enabled_0_ns = 100,
							      .running_0_ns = 100,
							      .enabled_1_ns = 100,
							      .running_1_ns = 50}});
}

/* An aten::addmm in a scope: 512 ns, 1,024 cycles, 32 misses in half of the time. */
static void put_operator(uint32_t has, const char *inputs)
{
	put_mode(has);
	fixture_op(&fixture, 10, 0, 1, "aten::linear", "float32[4,64];float32[32,64]", 0, NONE);
	put_counts(20, 0, has, 0, 0, 0);
	fixture_op(&fixture, 21, 0, 2, "aten::addmm", inputs, 0, NONE);
	put_counts(30, 0, has, 512, 1024, 32);
	fixture_op_end(&fixture, 31, 0, 2);
	put_counts(40, 0, has, 0, 1024, 0);
	fixture_op_end(&fixture, 41, 0, 1);
	fixture_op(&fixture, 50, 0, 3, "aten::linalg_svd", "float32[4,4]", 0, NONE);
	put_counts(51, 0, has, MAIN_NS - 512, 1, 1);
	fixture_op_end(&fixture, 60, 0, 3);
}

static struct cpu_roofline_limits limits;

static void limit(uint64_t peak)
{
	collect(OPERATORS_BY_NAME, 0);
	torsh_cpu_roofline_limits(&limits, &prepass, &operators, peak);
}

static struct cpu_roofline roofline_of(const char *name)
{
	return torsh_cpu_roofline_of(find(name), &limits);
}

static void assert_reason(const char *name, const char *text)
{
	const struct cpu_roofline roofline = roofline_of(name);

	assert_true(isnan(roofline.gflop_per_s) && isnan(roofline.flops_per_cycle));
	assert_true(isnan(roofline.peak_share) && isnan(roofline.flops_per_llc_byte));
	assert_non_null(roofline.reason);
	assert_non_null(strstr(roofline.reason, text));
}

static void flops_are_by_cycles_time_and_misses(void **state)
{
	struct cpu_roofline roofline;

	(void)state;
	put_operator(ALL, ADDMM);
	put_counts(90, 1, ALL, MAIN_NS / 99, 7, 7);
	limit(32);
	assert_int_equal(find("aten::addmm")->flops_all, 16384);
	roofline = roofline_of("aten::addmm");
	assert_null(roofline.reason);
	assert_float_equal(roofline.flops_per_cycle, 16, 1e-9);
	assert_float_equal(roofline.peak_share, 0.5, 1e-9);
	assert_float_equal(roofline.gflop_per_s, 32, 1e-9);
	assert_float_equal(roofline.llc_bytes, 64 * 64, 1e-9);
	assert_float_equal(roofline.llc_gb_per_s, 8, 1e-9);
	assert_float_equal(roofline.flops_per_llc_byte, 4, 1e-9);
	/* With what is inside: the same FLOPs and twice the cycles. */
	roofline = roofline_of("aten::linear");
	assert_float_equal(roofline.flops_per_cycle, 8, 1e-9);
	assert_float_equal(roofline.peak_share, 0.25, 1e-9);
	/* Where nobody states the peak there is no share of it. */
	limit(0);
	roofline = roofline_of("aten::addmm");
	assert_true(isnan(roofline.peak_share));
	assert_float_equal(roofline.flops_per_cycle, 16, 1e-9);
	/* What came from memory needs no formula. */
	assert_reason("aten::linalg_svd", "no formula");
	assert_float_equal(roofline_of("aten::linalg_svd").llc_bytes, 2 * 64, 1e-9);
}

static void other_threads_may_have_a_hundredth_of_the_time(void **state)
{
	(void)state;
	put_operator(ALL, ADDMM);
	put_counts(90, 1, ALL, MAIN_NS / 99, 0, 0);
	limit(32);
	assert_float_equal(limits.others_share, 0.01, 1e-12);
	assert_string_equal(limits.others_reason, "");
}

static void with_more_on_other_threads_nothing_is_known(void **state)
{
	(void)state;
	put_operator(ALL, ADDMM);
	put_counts(90, 1, ALL, 110, 0, 0);
	limit(32);
	assert_float_equal(limits.others_share, 0.1, 1e-12);
	assert_reason("aten::addmm", "took 10 % of the processor time");
	assert_true(isnan(roofline_of("aten::addmm").llc_bytes));
}

static void threads_that_did_not_end_may_have_done_anything(void **state)
{
	(void)state;
	put_operator(ALL, ADDMM);
	limit(32);
	assert_true(isnan(limits.others_share));
	assert_reason("aten::addmm", "1 were not counted");
}

static void without_a_pmu_there_is_the_time(void **state)
{
	struct cpu_roofline roofline;

	(void)state;
	put_operator(ALL & ~HARDWARE, ADDMM);
	put_counts(90, 1, ALL & ~HARDWARE, 1, 0, 0);
	limit(32);
	roofline = roofline_of("aten::addmm");
	assert_float_equal(roofline.gflop_per_s, 32, 1e-9);
	assert_true(isnan(roofline.flops_per_cycle) && isnan(roofline.llc_bytes));
	assert_true(isnan(roofline.peak_share) && isnan(roofline.flops_per_llc_byte));
	assert_non_null(strstr(roofline.reason, "pmu=on"));
}

static void a_processor_may_not_count_misses_of_the_last_cache(void **state)
{
	const uint32_t has = ALL & ~(1u << CPU_COUNTER_LLC_MISSES);
	struct cpu_roofline roofline;

	(void)state;
	put_operator(has, ADDMM);
	put_counts(90, 1, has, 1, 0, 0);
	limit(32);
	roofline = roofline_of("aten::addmm");
	assert_float_equal(roofline.flops_per_cycle, 16, 1e-9);
	assert_true(isnan(roofline.llc_bytes) && isnan(roofline.llc_gb_per_s));
	assert_non_null(strstr(roofline.reason, "does not count llc_misses"));
}

static void what_a_device_computes_is_not_the_cores(void **state)
{
	struct operator_total total;

	(void)state;
	put_operator(ALL, "float32[32]@cuda:0;float32[4,64]@cuda:0;float32[64,32]@cuda:0;1;1");
	put_counts(90, 1, ALL, 1, 0, 0);
	limit(32);
	assert_int_equal(find("aten::addmm")->flops_all, 16384);
	assert_reason("aten::addmm", "some tensors are on a device");
	/* Where devices were recorded, it is known which operators those are. */
	operators.has_devices = true;
	torsh_cpu_roofline_limits(&limits, &prepass, &operators, 32);
	total = *find("aten::addmm");
	assert_null(torsh_cpu_roofline_of(&total, &limits).reason);
	total.device_ns = 1;
	assert_string_equal(torsh_cpu_roofline_of(&total, &limits).reason,
			    "a device computed for it");
	assert_true(isnan(torsh_cpu_roofline_of(&total, &limits).flops_per_cycle));
}

static void flops_may_count_elsewhere_or_not_at_all(void **state)
{
	struct operator_total total;

	(void)state;
	put_operator(ALL, ADDMM);
	put_counts(90, 1, ALL, 1, 0, 0);
	limit(32);
	total = *find("aten::addmm");
	total.flops_all = 0;
	assert_non_null(strstr(torsh_cpu_roofline_of(&total, &limits).reason, "that calls it"));
	assert_true(isnan(torsh_cpu_roofline_of(&total, &limits).flops_per_cycle));
	limits.has_flops = false;
	assert_reason("aten::addmm", "TORSH_PROFILER_WITH_FLOPS=0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_TIMELINE(flops_are_by_cycles_time_and_misses),
		ON_A_TIMELINE(other_threads_may_have_a_hundredth_of_the_time),
		ON_A_TIMELINE(with_more_on_other_threads_nothing_is_known),
		ON_A_TIMELINE(threads_that_did_not_end_may_have_done_anything),
		ON_A_TIMELINE(without_a_pmu_there_is_the_time),
		ON_A_TIMELINE(a_processor_may_not_count_misses_of_the_last_cache),
		ON_A_TIMELINE(what_a_device_computes_is_not_the_cores),
		ON_A_TIMELINE(flops_may_count_elsewhere_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
