/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the analysis does not judge, and why; how findings are weighed and shown. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/evaluated_fixture.h"
#include "tools/analysis/rules.h"
#include "tools/analysis/sentence.h"

static void nothing_is_found_in_a_healthy_training(void **state)
{
	(void)state;
	evaluate(&healthy);
	for (int rule = 0; rule < N_RULES; rule++) {
		if (rule != RULE_LATE_RANK && !torsh_rule_is_of_host((enum rule)rule) &&
		    analysis.rules[rule].state != RULE_CLEAR)
			fail_msg("%s is %s (%s)", torsh_rules[rule].name,
				 torsh_rule_state_names[analysis.rules[rule].state],
				 analysis.rules[rule].reason);
	}
	assert_int_equal(analysis.n, 0);
	forget();
}

static void what_comes_behind_the_last_step_is_not_in_it(void **state)
{
	struct scenario given = healthy;

	(void)state;
	given.tail_ns = 100.0 * STEP_NS;
	evaluate(&given);
	for (int rule = 0; rule < N_RULES; rule++) {
		if (!torsh_rule_is_of_host((enum rule)rule))
			assert_int_equal(analysis.rules[rule].state,
					 rule == RULE_LATE_RANK ? RULE_NOT_EVALUATED : RULE_CLEAR);
	}
	forget();
	given.copy_is_async = 0;
	evaluate(&given);
	assert_float_equal(find(RULE_SYNCHRONOUS_COPY)->share_pct,
			   100 * given.copy_call_ns / STEP_NS, 1e-6);
	forget();
}

static void what_is_not_recorded_is_not_judged(void **state)
{
	struct scenario given = healthy;

	(void)state;
	given.without_counters = given.is_gemm = 1;
	evaluate(&given);
	for (int rule = RULE_GEMM_WITHOUT_TENSOR_CORES; rule <= RULE_MEMORY_BOUND; rule++) {
		assert_int_equal(analysis.rules[rule].state, RULE_NOT_EVALUATED);
		assert_non_null(strstr(analysis.rules[rule].reason, "count"));
	}
	assert_string_equal(analysis.rules[RULE_COUNTERS_REFUSED].reason,
			    "counters were not requested");
	forget();
	given = healthy;
	given.without_steps = 1;
	evaluate(&given);
	assert_string_equal(analysis.rules[RULE_EXCESS_SYNCHRONISATION].reason,
			    "no steps are known");
	assert_int_equal(analysis.rules[RULE_ALLOCATION_CHURN].state, RULE_NOT_EVALUATED);
	assert_int_equal(analysis.rules[RULE_DEVICE_UNDERUSED].state, RULE_CLEAR);
	forget();
	given = healthy;
	given.without_device = 1;
	evaluate(&given);
	for (int rule = 0; rule <= RULE_MODULE_LOADS; rule++)
		assert_string_equal(analysis.rules[rule].reason, "no device was used");
	forget();
}

/* A template of Inductor has its sizes in its name; a scope of the program has any name. */
static void a_scope_is_not_judged_by_its_name(void **state)
{
	struct scenario given = healthy;

	(void)state;
	given.is_in_scope = 1;
	evaluate(&given);
	assert_int_equal(analysis.rules[RULE_MEMORY_BOUND].state, RULE_NOT_EVALUATED);
	assert_string_equal(analysis.rules[RULE_MEMORY_BOUND].reason,
			    "the FLOPs of some operators are not known");
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
	struct scenario given = healthy;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		given.n_ranks = expected[i].n_ranks;
		given.communication_ns = expected[i].communication_ns;
		given.late_ns = expected[i].late_ns;
		given.late_is_other = expected[i].late_is_other;
		evaluate(&given);
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

static void a_waiting_rank_has_the_rank_that_it_waits_for(void **state)
{
	struct scenario given = healthy;
	const struct finding *finding;

	(void)state;
	given.kernel_ns = 50000;
	given.n_ranks = 2;
	given.communication_ns = 10000;
	given.late_ns = 160000; /* the other one waits */
	evaluate(&given);
	finding = find(RULE_LATE_RANK);
	assert_int_equal(analysis.rules[RULE_LATE_RANK].n_findings, 1);
	assert_string_equal(finding->process->rank, "1");
	assert_float_equal(evidence_of(finding, "late_rank"), 0, 0);
	assert_float_equal(evidence_of(finding, "waited_ns"), STEPS * 150000.0, 0);
	assert_float_equal(evidence_of(finding, "collectives"), STEPS, 0);
	assert_float_equal(finding->share_pct, 15, 1e-9);
	forget();
}

static void findings_have_their_fraction_of_the_steps(void **state)
{
	static const struct {
		double copy_call_ns;
		enum severity severity;
	} expected[] = {{19999, SEVERITY_LOW},	  {20000, SEVERITY_MEDIUM},
			{99999, SEVERITY_MEDIUM}, {100000, SEVERITY_HIGH},
			{299999, SEVERITY_HIGH},  {300000, SEVERITY_CRITICAL}};
	struct scenario given = healthy;

	(void)state;
	given.copy_is_async = 0;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct finding *finding;

		given.copy_call_ns = expected[i].copy_call_ns;
		evaluate(&given);
		finding = find(RULE_SYNCHRONOUS_COPY);
		assert_non_null(finding);
		assert_float_equal(finding->share_pct, 100 * given.copy_call_ns / STEP_NS, 1e-6);
		assert_int_equal(finding->severity, expected[i].severity);
		assert_string_equal(finding->share_of, "the steps");
		forget();
	}
	/* Below its floor a rule is clear, and reports that. */
	given.copy_call_ns = 9999;
	evaluate(&given);
	assert_int_equal(analysis.rules[RULE_SYNCHRONOUS_COPY].state, RULE_CLEAR);
	assert_non_null(strstr(analysis.rules[RULE_SYNCHRONOUS_COPY].reason, "floor"));
	forget();
}

static void findings_have_their_place(void **state)
{
	struct scenario given = healthy;
	const struct finding *finding;

	(void)state;
	given.grid = 10;
	evaluate(&given);
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

/* Each sentence, with all of its numbers there. */
static void sentences_have_their_numbers(void **state)
{
	struct finding finding = {.rule = RULE_DEVICE_UNDERUSED, .has_device = true};
	char *sentence;

	(void)state;
	torsh_finding_limit(&finding, LIMIT_DEVICE_UNDERUSED_BUSY, 12.04);
	torsh_finding_add(&finding, "idle_ns", "ns", 1.5e9);
	sentence = torsh_finding_sentence(&finding, NULL);
	assert_string_equal(sentence,
			    "Device 0 was idle for 1.500 s, at work for 12.0% of the time.");
	free(sentence);
	finding = (struct finding){.rule = RULE_BLOCKING_CALLS, .api = "cudaStreamSynchronize"};
	torsh_finding_limit(&finding, LIMIT_BLOCKING_CALLS_TIME, 7.5);
	torsh_finding_add(&finding, "calls", "calls", 1);
	torsh_finding_add(&finding, "host_ns", "ns", 250e6);
	sentence = torsh_finding_sentence(&finding, NULL);
	assert_string_equal(sentence, "The host waited for devices in 7.5% of the time: 1 call of "
				      "cudaStreamSynchronize, 250 ms.");
	free(sentence);
	finding.api = NULL;
	sentence = torsh_finding_sentence(&finding, NULL);
	assert_string_equal(sentence,
			    "The host waited for devices in 7.5% of the time: 1 call, 250 ms.");
	free(sentence);
}

static void windows_leave_out_what_is_requested_outside(void **state)
{
	struct scenario given = healthy;

	(void)state;
	given.copy_is_async = 0;
	evaluate(&given);
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
	struct scenario given = healthy;
	cJSON *report;

	(void)state;
	given.grid = 10;
	given.copy_is_async = 0;
	story_write(path, &story, &given);
	assert_int_equal(RUN(report, path), 0);
	assert_null(strstr(output, "grid_starvation"));
	assert_non_null(strstr(output, "the grid is too small to fill device 0, 0.05"));
	assert_non_null(strstr(output, "See: torsh kernels"));
	assert_int_equal(RUN(report, path, "-v"), 0);
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
	free(output);
	output = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_in_a_healthy_training),
		cmocka_unit_test(what_comes_behind_the_last_step_is_not_in_it),
		cmocka_unit_test(what_is_not_recorded_is_not_judged),
		cmocka_unit_test(a_scope_is_not_judged_by_its_name),
		cmocka_unit_test(ranks_that_can_not_be_compared_are_not_judged),
		cmocka_unit_test(a_waiting_rank_has_the_rank_that_it_waits_for),
		cmocka_unit_test(findings_have_their_fraction_of_the_steps),
		cmocka_unit_test(findings_have_their_place),
		cmocka_unit_test(sentences_have_their_numbers),
		cmocka_unit_test(windows_leave_out_what_is_requested_outside),
		cmocka_unit_test(reports_show_findings),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
