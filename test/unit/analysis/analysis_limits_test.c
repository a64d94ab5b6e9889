/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each rule, at each of its limits from both sides. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/evaluated_fixture.h"
#include "tools/analysis/rules.h"
#include "tools/analysis/sentence.h"

/* What a case changes of the healthy training. */
struct setting {
	size_t field;
	double value;
};

#define FIELD(name) offsetof(struct scenario, name)
#define SETTINGS_MAX 4

struct rule_case {
	enum rule rule;
	enum limit limit;
	/* the other limits are passed with these; a value of 0 ends them */
	struct setting common[SETTINGS_MAX];
	size_t field;
	double clear, fires;
};

static const struct rule_case cases[] = {
	{RULE_GRID_STARVATION, LIMIT_GRID_STARVATION_WAVES, {{0}}, FIELD(grid), 400, 399},
	/* 128 threads are 4 warps: of 64 warps five blocks fill 31 %, four 25 %. */
	{RULE_SHARED_MEMORY_LIMITED,
	 LIMIT_SHARED_MEMORY_LIMITED_OCCUPANCY,
	 {{FIELD(block), 128}, {FIELD(grid), 2000}},
	 FIELD(dynamic_bytes),
	 45568,
	 46080},
	{RULE_SHARED_MEMORY_LIMITED,
	 LIMIT_SHARED_MEMORY_LIMITED_DYNAMIC,
	 {{FIELD(block), 64}, {FIELD(grid), 2000}},
	 FIELD(dynamic_bytes),
	 32768,
	 32769},
	{RULE_SHARED_MEMORY_LIMITED,
	 LIMIT_SHARED_MEMORY_LIMITED_WAVES,
	 {{FIELD(block), 128}, {FIELD(dynamic_bytes), 46080}},
	 FIELD(grid),
	 2 * 4 * MULTIPROCESSORS - 1,
	 2 * 4 * MULTIPROCESSORS},
	{RULE_GEMM_WITHOUT_TENSOR_CORES,
	 LIMIT_GEMM_WITHOUT_TENSOR_CORES_INSTRUCTIONS,
	 {{FIELD(is_gemm), 1}},
	 FIELD(tensor_instructions),
	 1,
	 0},
	{RULE_LATENCY_BOUND, LIMIT_LATENCY_BOUND_ELIGIBLE, {{0}}, FIELD(eligible_pct), 20, 19.99},
	{RULE_DIVERGENCE, LIMIT_DIVERGENCE_THREADS, {{0}}, FIELD(threads), 24, 23.99},
	{RULE_REGISTER_SPILLS, LIMIT_REGISTER_SPILLS_WAVEFRONTS, {{0}}, FIELD(spills), 0, 1},
	{RULE_MEMORY_BOUND, LIMIT_MEMORY_BOUND_THROUGHPUT, {{0}}, FIELD(dram_pct), 59.99, 60},
	/* 2 * 64^3 FLOP: with 20480 bytes as many a byte as the device's ridge of 25.6. */
	{RULE_MEMORY_BOUND,
	 LIMIT_MEMORY_BOUND_THROUGHPUT,
	 {{FIELD(dram_pct), 90}},
	 FIELD(dram_read),
	 20480 - 8192,
	 20481 - 8192},
	{RULE_LAUNCH_BOUND,
	 LIMIT_LAUNCH_BOUND_SHORT,
	 {{FIELD(kernel_ns), 1100}, {FIELD(long_call_ns), 1200}},
	 FIELD(n_long_calls),
	 2,
	 3},
	{RULE_LAUNCH_BOUND,
	 LIMIT_LAUNCH_BOUND_HOST_WAIT,
	 {{FIELD(kernel_ns), 1100}, {FIELD(long_call_ns), 1200}, {FIELD(n_long_calls), 4}},
	 FIELD(n_early),
	 3,
	 2},
	{RULE_LAUNCH_BOUND,
	 LIMIT_LAUNCH_BOUND_IDLE,
	 {{FIELD(long_call_ns), 230000}, {FIELD(n_long_calls), 4}},
	 FIELD(kernel_ns),
	 225000,
	 224999},
	{RULE_DEVICE_UNDERUSED,
	 LIMIT_DEVICE_UNDERUSED_BUSY,
	 {{0}},
	 FIELD(kernel_ns),
	 125000,
	 124999},
	{RULE_DEVICE_GAP,
	 LIMIT_DEVICE_GAP_GAP,
	 {{0}},
	 FIELD(pause_ns),
	 500000000 - 25000,
	 500000000 - 24999},
	{RULE_EXPOSED_COMMUNICATION,
	 LIMIT_EXPOSED_COMMUNICATION_EXPOSED,
	 {{FIELD(kernel_ns), 140000}},
	 FIELD(communication_ns),
	 100000,
	 100001},
	{RULE_LATE_RANK,
	 LIMIT_LATE_RANK_WAITED,
	 {{FIELD(kernel_ns), 140000}, {FIELD(n_ranks), 2}, {FIELD(late_ns), 9000}},
	 FIELD(communication_ns),
	 109000,
	 109001},
	{RULE_PAGEABLE_ASYNC_COPY,
	 LIMIT_PAGEABLE_ASYNC_COPY_COPIES,
	 {{0}},
	 FIELD(copy_is_pageable),
	 0,
	 1},
	{RULE_SYNCHRONOUS_COPY, LIMIT_SYNCHRONOUS_COPY_COPIES, {{0}}, FIELD(copy_is_async), 1, 0},
	{RULE_SYNCHRONOUS_MEMSET,
	 LIMIT_SYNCHRONOUS_MEMSET_MEMSETS,
	 {{0}},
	 FIELD(memset_is_async),
	 1,
	 0},
	{RULE_EXCESS_SYNCHRONISATION,
	 LIMIT_EXCESS_SYNCHRONISATION_CALLS,
	 {{0}},
	 FIELD(waits),
	 1,
	 2},
	{RULE_EXCESS_SYNCHRONISATION,
	 LIMIT_EXCESS_SYNCHRONISATION_CALLS,
	 {{FIELD(waits), 2}},
	 FIELD(waits_in_optimizer),
	 1,
	 0},
	{RULE_BLOCKING_CALLS, LIMIT_BLOCKING_CALLS_TIME, {{0}}, FIELD(wait_ns), 50000, 50001},
	{RULE_ALLOCATION_CHURN,
	 LIMIT_ALLOCATION_CHURN_CALLS,
	 {{0}},
	 FIELD(first_allocating_step),
	 2,
	 1},
	{RULE_MODULE_LOADS, LIMIT_MODULE_LOADS_CALLS, {{0}}, FIELD(load_late), 0, 1},
	{RULE_DATA_LOADING, LIMIT_DATA_LOADING_TIME, {{0}}, FIELD(data_ns), 100000, 100001},
	/* Of two steady steps each is one half; four of a step are there before. */
	{RULE_NEW_SHAPES, LIMIT_NEW_SHAPES_SHAPES, {{0}}, FIELD(shapes), 8, 9},
	{RULE_NEW_SHAPES, LIMIT_NEW_SHAPES_STEPS, {{FIELD(warm_shapes), 9}}, FIELD(shapes), 4, 5},
	{RULE_MEMORY_WASTE, LIMIT_MEMORY_WASTE_UNUSED, {{0}}, FIELD(allocated), 7e9, 7e9 - 1},
	{RULE_LARGE_ALLOCATION,
	 LIMIT_LARGE_ALLOCATION_SIZE,
	 {{0}},
	 FIELD(tensor_bytes),
	 MEMORY_BYTES / 4.0 - 1,
	 MEMORY_BYTES / 4.0},
	/* Copies and memsets are 2000 ns of each step that are in no operator either. */
	{RULE_HIGH_UNATTRIBUTED,
	 LIMIT_HIGH_UNATTRIBUTED_TIME,
	 {{FIELD(kernel_ns), 70000}},
	 FIELD(outside_ns),
	 118000,
	 118001},
	{RULE_EVENTS_MISSING, LIMIT_EVENTS_MISSING_EVENTS, {{0}}, FIELD(dropped), 0, 1},
	{RULE_EVENTS_MISSING, LIMIT_EVENTS_MISSING_EVENTS, {{0}}, FIELD(lost_records), 0, 1},
	{RULE_COUNTERS_REFUSED,
	 LIMIT_COUNTERS_REFUSED_REFUSALS,
	 {{0}},
	 FIELD(refused_devices),
	 0,
	 1},
	/* The one thread is there as long as its process: for five seconds, or for one. */
	{RULE_PROFILER_TOO_HEAVY,
	 LIMIT_PROFILER_TOO_HEAVY_TIME,
	 {{0}},
	 FIELD(overhead_ns),
	 1e8,
	 1e8 + 1},
	{RULE_PROFILER_TOO_HEAVY,
	 LIMIT_PROFILER_TOO_HEAVY_LOST,
	 {{FIELD(run_ns), 1e9}},
	 FIELD(overhead_ns),
	 5e7,
	 5e7 + 1},
};

static void set(struct scenario *given, size_t field, double value)
{
	memcpy((char *)given + field, &value, sizeof(value));
}

static struct scenario scenario_of(const struct rule_case *one, double value)
{
	struct scenario given = healthy;

	for (size_t i = 0; i < SETTINGS_MAX && one->common[i].value != 0; i++)
		set(&given, one->common[i].field, one->common[i].value);
	set(&given, one->field, value);
	return given;
}

/* Nothing that the rule's sentence names is missing. */
static void expect_sentence(const struct finding *finding)
{
	char *sentence = torsh_finding_sentence(finding, NULL);

	if (strstr(sentence, "an unknown one") || strpbrk(sentence, "{}[]"))
		fail_msg("%s: %s", torsh_rules[finding->rule].name, sentence);
	free(sentence);
}

static void expect_evidence(const struct rule_case *one, const struct finding *finding)
{
	for (size_t i = 0; i < finding->n_evidence; i++) {
		if (finding->evidence[i].limit != &torsh_limits[one->limit])
			continue;
		assert_true(torsh_limit_passed(one->limit, finding->evidence[i].value));
		return;
	}
	fail_msg("%s does not contain that it passed %s", torsh_rules[one->rule].name,
		 torsh_limits[one->limit].name);
}

static void rules_fire_beyond_their_limits_and_not_at_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rule_case *one = &cases[i];
		struct scenario clear = scenario_of(one, one->clear),
				fires = scenario_of(one, one->fires);

		evaluate(&clear);
		if (analysis.rules[one->rule].state != RULE_CLEAR)
			fail_msg("case %zu: %s is %s, not clear (%s)", i,
				 torsh_rules[one->rule].name,
				 torsh_rule_state_names[analysis.rules[one->rule].state],
				 analysis.rules[one->rule].reason);
		forget();
		evaluate(&fires);
		if (analysis.rules[one->rule].state != RULE_FIRED)
			fail_msg("case %zu: %s is %s, not fired (%s)", i,
				 torsh_rules[one->rule].name,
				 torsh_rule_state_names[analysis.rules[one->rule].state],
				 analysis.rules[one->rule].reason);
		expect_evidence(one, find(one->rule));
		expect_sentence(find(one->rule));
		forget();
	}
}

static void each_limit_has_a_case(void **state)
{
	(void)state;
	for (int limit = 0; limit < N_LIMITS; limit++) {
		/* Those of the host have their own test. */
		bool is_there = torsh_rule_is_of_host(torsh_limits[limit].rule);

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			is_there = is_there || (int)cases[i].limit == limit;
		if (!is_there)
			fail_msg("no case is about %s", torsh_limits[limit].name);
	}
}

static void a_limit_is_passed_on_its_side_only(void **state)
{
	(void)state;
	for (int i = 0; i < N_LIMITS; i++) {
		enum limit_side side = torsh_limits[i].side;
		double value = torsh_limits[i].value;

		assert_int_equal(torsh_limit_passed((enum limit)i, value),
				 side == SIDE_AT_MOST || side == SIDE_AT_LEAST);
		assert_int_equal(torsh_limit_passed((enum limit)i, nextafter(value, INFINITY)),
				 side == SIDE_ABOVE || side == SIDE_AT_LEAST);
		assert_int_equal(torsh_limit_passed((enum limit)i, nextafter(value, -INFINITY)),
				 side == SIDE_BELOW || side == SIDE_AT_MOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_fire_beyond_their_limits_and_not_at_them),
		cmocka_unit_test(each_limit_has_a_case),
		cmocka_unit_test(a_limit_is_passed_on_its_side_only),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
