/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Each rule, at each of its limits from both sides; what is not judged, and why; how findings are
 * weighed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "test/unit/fixtures/analysis_fixture.h"
#include "test/unit/fixtures/command_fixture.h"
#include "tools/recording/read.h"

static char path[] = "/tmp/torsh-analysis-XXXXXX";
static struct story story;
static struct recording *recording;
static struct prepass prepass;
static struct analysis_request request;
static struct analysis analysis;

static void evaluate(const struct scenario *told)
{
	char error[256];

	story_write(path, &story, told);
	recording = torsh_recording_read(path, 0, error, sizeof(error));
	assert_non_null(recording);
	torsh_prepass_make(&prepass, recording, recording->processes, recording->n_processes);
	request = (struct analysis_request){.recording = recording,
					    .processes = recording->processes,
					    .n_processes = recording->n_processes,
					    .prepass = &prepass,
					    .to_ns = UINT64_MAX};
	torsh_analysis_make(&analysis, &request);
}

static void forget(void)
{
	torsh_analysis_free(&analysis);
	torsh_prepass_free(&prepass);
	torsh_recording_destroy(recording);
	story_forget(&story);
}

static const struct finding *find(enum rule rule)
{
	for (size_t i = 0; i < analysis.n; i++) {
		if (analysis.findings[i].rule == rule)
			return &analysis.findings[i];
	}
	return NULL;
}

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

static void set(struct scenario *told, size_t field, double value)
{
	memcpy((char *)told + field, &value, sizeof(value));
}

static struct scenario scenario_of(const struct rule_case *one, double value)
{
	struct scenario told = healthy;

	for (size_t i = 0; i < SETTINGS_MAX && one->common[i].value != 0; i++)
		set(&told, one->common[i].field, one->common[i].value);
	set(&told, one->field, value);
	return told;
}

static void expect_evidence(const struct rule_case *one, const struct finding *finding)
{
	for (size_t i = 0; i < finding->n_evidence; i++) {
		if (finding->evidence[i].limit != &torsh_limits[one->limit])
			continue;
		assert_true(torsh_limit_passed(one->limit, finding->evidence[i].value));
		return;
	}
	fail_msg("%s does not say that it passed %s", torsh_rules[one->rule].name,
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
		forget();
	}
}

static void each_limit_has_a_case(void **state)
{
	(void)state;
	for (int limit = 0; limit < N_LIMITS; limit++) {
		bool is_there = false;

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

static void nothing_is_found_in_a_healthy_training(void **state)
{
	(void)state;
	evaluate(&healthy);
	for (int rule = 0; rule < N_RULES; rule++) {
		if (rule != RULE_LATE_RANK && analysis.rules[rule].state != RULE_CLEAR)
			fail_msg("%s is %s (%s)", torsh_rules[rule].name,
				 torsh_rule_state_names[analysis.rules[rule].state],
				 analysis.rules[rule].reason);
	}
	assert_int_equal(analysis.n, 0);
	forget();
}

static void what_comes_behind_the_last_step_is_not_in_it(void **state)
{
	struct scenario told = healthy;

	(void)state;
	told.tail_ns = 100.0 * STEP_NS;
	evaluate(&told);
	for (int rule = 0; rule < N_RULES; rule++)
		assert_int_equal(analysis.rules[rule].state,
				 rule == RULE_LATE_RANK ? RULE_NOT_EVALUATED : RULE_CLEAR);
	forget();
	told.copy_is_async = 0;
	evaluate(&told);
	assert_float_equal(find(RULE_SYNCHRONOUS_COPY)->share_pct,
			   100 * told.copy_call_ns / STEP_NS, 1e-6);
	forget();
}

static void what_is_not_recorded_is_not_judged(void **state)
{
	struct scenario told = healthy;

	(void)state;
	told.without_counters = told.is_gemm = 1;
	evaluate(&told);
	for (int rule = RULE_GEMM_WITHOUT_TENSOR_CORES; rule <= RULE_MEMORY_BOUND; rule++) {
		assert_int_equal(analysis.rules[rule].state, RULE_NOT_EVALUATED);
		assert_non_null(strstr(analysis.rules[rule].reason, "count"));
	}
	assert_string_equal(analysis.rules[RULE_COUNTERS_REFUSED].reason,
			    "counters were not asked for");
	forget();
	told = healthy;
	told.without_steps = 1;
	evaluate(&told);
	assert_string_equal(analysis.rules[RULE_EXCESS_SYNCHRONISATION].reason,
			    "no steps are known");
	assert_int_equal(analysis.rules[RULE_ALLOCATION_CHURN].state, RULE_NOT_EVALUATED);
	assert_int_equal(analysis.rules[RULE_DEVICE_UNDERUSED].state, RULE_CLEAR);
	forget();
	told = healthy;
	told.without_device = 1;
	evaluate(&told);
	for (int rule = 0; rule <= RULE_MODULE_LOADS; rule++)
		assert_string_equal(analysis.rules[rule].reason, "no device was used");
	forget();
}

/* Of one process alone, of ranks that ran different collectives, and of one that is there twice. */
static void ranks_that_can_not_be_compared_are_not_judged(void **state)
{
	static const struct {
		double n_ranks, communication_ns, late_ns, late_is_other;
		const char *reason;
	} expected[] = {{1, 100, 50, 0, "no launcher gave the process a rank"},
			{2, 0, 0, 0, "no collectives were seen on its devices"},
			{2, 100, 50, 1, "no other rank with the same collectives was recorded"},
			{-2, 100, 50, 0, "several processes have the same rank"}};
	struct scenario told = healthy;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		told.n_ranks = expected[i].n_ranks;
		told.communication_ns = expected[i].communication_ns;
		told.late_ns = expected[i].late_ns;
		told.late_is_other = expected[i].late_is_other;
		evaluate(&told);
		assert_int_equal(analysis.rules[RULE_LATE_RANK].state, RULE_NOT_EVALUATED);
		assert_string_equal(analysis.rules[RULE_LATE_RANK].reason, expected[i].reason);
		forget();
	}
}

static double evidence_of(const struct finding *finding, const char *name)
{
	for (size_t i = 0; i < finding->n_evidence; i++) {
		if (strcmp(finding->evidence[i].name, name) == 0)
			return finding->evidence[i].value;
	}
	fail_msg("there is no %s", name);
	return NAN;
}

static void the_rank_that_waits_is_told_for_whom(void **state)
{
	struct scenario told = healthy;
	const struct finding *finding;

	(void)state;
	told.kernel_ns = 50000;
	told.n_ranks = 2;
	told.communication_ns = 10000;
	told.late_ns = 160000; /* the other one waits */
	evaluate(&told);
	finding = find(RULE_LATE_RANK);
	assert_int_equal(analysis.rules[RULE_LATE_RANK].n_findings, 1);
	assert_string_equal(finding->process->rank, "1");
	assert_float_equal(evidence_of(finding, "late_rank"), 0, 0);
	assert_float_equal(evidence_of(finding, "waited_ns"), STEPS * 150000.0, 0);
	assert_float_equal(evidence_of(finding, "collectives"), STEPS, 0);
	assert_float_equal(finding->share_pct, 15, 1e-9);
	forget();
}

static void findings_say_how_much_of_the_steps_they_are(void **state)
{
	static const struct {
		double copy_call_ns;
		enum severity severity;
	} expected[] = {{19999, SEVERITY_LOW},	  {20000, SEVERITY_MEDIUM},
			{99999, SEVERITY_MEDIUM}, {100000, SEVERITY_HIGH},
			{299999, SEVERITY_HIGH},  {300000, SEVERITY_CRITICAL}};
	struct scenario told = healthy;

	(void)state;
	told.copy_is_async = 0;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct finding *finding;

		told.copy_call_ns = expected[i].copy_call_ns;
		evaluate(&told);
		finding = find(RULE_SYNCHRONOUS_COPY);
		assert_non_null(finding);
		assert_float_equal(finding->share_pct, 100 * told.copy_call_ns / STEP_NS, 1e-6);
		assert_int_equal(finding->severity, expected[i].severity);
		assert_string_equal(finding->share_of, "the steps");
		forget();
	}
	/* Below its floor a rule is clear, and says so. */
	told.copy_call_ns = 9999;
	evaluate(&told);
	assert_int_equal(analysis.rules[RULE_SYNCHRONOUS_COPY].state, RULE_CLEAR);
	assert_non_null(strstr(analysis.rules[RULE_SYNCHRONOUS_COPY].reason, "floor"));
	forget();
}

static void findings_say_where(void **state)
{
	struct scenario told = healthy;
	const struct finding *finding;

	(void)state;
	told.grid = 10;
	evaluate(&told);
	finding = find(RULE_GRID_STARVATION);
	assert_non_null(finding);
	assert_string_equal(finding->kernel, "work");
	assert_string_equal(finding->operator_name, "aten::mm");
	assert_true(finding->has_device);
	assert_int_equal(finding->device, 0);
	/*
	 * 4 kernels of 225 us a millisecond; the device is at work for as long, but for copies
	 * beside them.
	 */
	assert_float_equal(finding->share_pct, 90, 0.5);
	forget();
}

static void windows_leave_out_what_is_asked_for_outside(void **state)
{
	struct scenario told = healthy;

	(void)state;
	told.copy_is_async = 0;
	evaluate(&told);
	torsh_analysis_free(&analysis);
	request.from_ns = 2 * STEP_NS;
	request.to_ns = 4 * STEP_NS;
	torsh_analysis_make(&analysis, &request);
	assert_float_equal(find(RULE_SYNCHRONOUS_COPY)->evidence[0].value, 2, 0);
	torsh_analysis_free(&analysis);
	request.from_ns = 30 * (uint64_t)STEP_NS;
	request.to_ns = UINT64_MAX;
	torsh_analysis_make(&analysis, &request);
	assert_int_equal(analysis.rules[RULE_SYNCHRONOUS_COPY].state, RULE_NOT_EVALUATED);
	forget();
}

static void reports_show_findings(void **state)
{
	struct scenario told = healthy;
	cJSON *report;

	(void)state;
	told.grid = 10;
	told.copy_is_async = 0;
	story_write(path, &story, &told);
	assert_int_equal(RUN(report, path), 0);
	assert_non_null(strstr(output, "Critical, grid_starvation, "));
	assert_non_null(strstr(output, "waves_per_sm 0.05 waves (below 2)"));
	assert_non_null(strstr(output, torsh_rules[RULE_SYNCHRONOUS_COPY].suggestion));
	assert_int_equal(RUN(report, path, "--json"), 0);
	assert_schema("report");
	report = parse_output();
	assert_string_equal(text_of(item_of(report, "inefficiencies", 0), "rule"),
			    "grid_starvation");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "rules")), N_RULES);
	cJSON_Delete(report);
	assert_int_equal(RUN(export, path, "--format", "profile"), 0);
	assert_schema("profile");
	story_forget(&story);
}

static int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
	(void)state;
	free(output);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_in_a_healthy_training),
		cmocka_unit_test(rules_fire_beyond_their_limits_and_not_at_them),
		cmocka_unit_test(each_limit_has_a_case),
		cmocka_unit_test(a_limit_is_passed_on_its_side_only),
		cmocka_unit_test(what_comes_behind_the_last_step_is_not_in_it),
		cmocka_unit_test(what_is_not_recorded_is_not_judged),
		cmocka_unit_test(ranks_that_can_not_be_compared_are_not_judged),
		cmocka_unit_test(the_rank_that_waits_is_told_for_whom),
		cmocka_unit_test(findings_say_how_much_of_the_steps_they_are),
		cmocka_unit_test(findings_say_where),
		cmocka_unit_test(windows_leave_out_what_is_asked_for_outside),
		cmocka_unit_test(reports_show_findings),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
