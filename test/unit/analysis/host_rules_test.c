/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about programs without devices, at each of their limits from both sides. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/host_fixture.h"
#include "tools/analysis/rules.h"
#include "tools/analysis/sentence.h"
#include "tools/recording/read.h"

static char path[] = "/tmp/torsh-host-rules-XXXXXX";
static struct host_story story;
static struct recording *recording;
static struct prepass prepass;
static struct analysis_request request;
static struct analysis analysis;

static void evaluate(const struct host_scenario *scene)
{
	char error[256];

	host_write(path, &story, scene);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
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
	fixture_free(&story.fixture);
}

static const struct finding *find(enum rule rule)
{
	for (size_t i = 0; i < analysis.n; i++) {
		if (analysis.findings[i].rule == rule)
			return &analysis.findings[i];
	}
	return NULL;
}

/* The others of the host are in host_costs_test.c. */
static bool is_of_this_test(enum rule rule)
{
	return torsh_rule_is_of_host(rule) && rule <= RULE_GC_PAUSES;
}

#define GIB 1073741824.0
#define FIELD(name) offsetof(struct host_scenario, name)
#define COMMON_MAX 2

struct rule_case {
	enum limit limit;
	struct {
		size_t field;
		double value;
	} common[COMMON_MAX]; /* the other limits are passed with these */
	size_t field;
	double clear, fires;
	const char *sentence; /* of what fires */
};

static const struct rule_case cases[] = {
	{LIMIT_STEP_WAITS_TIME,
	 {{0}},
	 FIELD(wait_ns),
	 2000000,
	 2000001,
	 "20.0% of the steps' time passes in 3 gaps of at least 1 ms without any operator, the "
	 "longest 2 ms in step 1."},
	{LIMIT_PYTHON_OVERHEAD_TIME,
	 {{0}},
	 FIELD(gap_ns),
	 150000,
	 150001,
	 "Between operators the program spends 30.0% of the steps' time, 9 ms, in 20 gaps a "
	 "step: Python."},
	{LIMIT_SMALL_OPERATORS_TIME,
	 {{0}},
	 FIELD(n_short),
	 1000,
	 1001,
	 "50.0% of the time in operators goes to calls below 10 µs, 1,001 calls a step of 5 µs "
	 "each."},
	{LIMIT_SMALL_OPERATORS_CALLS, {{FIELD(wait_ns), 9200000}}, FIELD(n_short), 100, 101, NULL},
	{LIMIT_DTYPE_COPIES_TIME,
	 {{FIELD(is_converting), 1}},
	 FIELD(copy_ns),
	 500000,
	 500001,
	 "Copies from one type of number to another take 5.0% of the steps' time, 1.5 ms: 1 copy "
	 "a step."},
	{LIMIT_HOST_ALLOCATION_CHURN_RATE,
	 {{FIELD(temporary_bytes), 1e6}},
	 FIELD(temporary),
	 1000000,
	 1000010,
	 "1,000,010 blocks were freed again before the next allocation, 200,002 blocks a second, "
	 "977 KiB in all."},
	{LIMIT_LARGE_TEMPORARIES_RATE,
	 {{FIELD(temporary), 100}},
	 FIELD(temporary_bytes),
	 5 * GIB,
	 5 * GIB + 1,
	 "5.00 GiB in 100 blocks were freed again before the next allocation, 1.00 GiB a second."},
	{LIMIT_LARGE_TEMPORARIES_SIZE,
	 {{FIELD(temporary_bytes), 6 * GIB}},
	 FIELD(temporary),
	 49153,
	 49152,
	 NULL},
	{LIMIT_ALLOCATION_IN_HOT_STEP_BYTES,
	 {{0}},
	 FIELD(bytes),
	 5 * 4194304,
	 5 * 4194304 + 5,
	 "Each step allocates 4.00 MiB outside of operators and frees it again: 1 block a step of "
	 "4.00 MiB."},
	{LIMIT_ALLOCATION_IN_HOT_STEP_SIZE,
	 {{FIELD(bytes), 5 * 8388608.0}},
	 FIELD(blocks),
	 321,
	 320,
	 NULL},
	{LIMIT_OVERSUBSCRIBED_THREADS_TIME,
	 {{0}},
	 FIELD(oversubscribed_ns),
	 1e9,
	 1e9 + 1,
	 "In 25.0% of the run 8 threads wanted to run at once on 4 CPUs."},
	{LIMIT_OVERSUBSCRIBED_THREADS_LOAD,
	 {{FIELD(oversubscribed_ns), 2e9}},
	 FIELD(threads),
	 7.5,
	 8,
	 NULL},
	{LIMIT_PAGE_FAULTS_TIMES,
	 {{FIELD(rss_peak), 1024e6}},
	 FIELD(faults),
	 999999,
	 1000000,
	 "Memory was given back to the system and faulted in again 4 times: 1,000,000 faults, "
	 "200,000 faults a second, with at most 977 MiB resident."},
	{LIMIT_PAGE_FAULTS_RATE, {{FIELD(rss_peak), 4096}}, FIELD(faults), 100000, 100001, NULL},
	{LIMIT_SWAPPING_SWAPPED,
	 {{0}},
	 FIELD(swapped),
	 16777216,
	 16777217,
	 "16.0 MiB of the process were swapped out; 0 faults waited for a disk."},
	{LIMIT_GC_PAUSES_TIME,
	 {{0}},
	 FIELD(gc_ns),
	 500000,
	 500001,
	 "Python's garbage collector took 1.5 ms in 3 runs, 5.0% of the time; the longest run "
	 "500 µs, of generation 2, in step 1."},
};

static struct host_scenario scenario_of(const struct rule_case *one, double value)
{
	struct host_scenario scene = healthy_host;

	for (size_t i = 0; i < COMMON_MAX && one->common[i].value != 0; i++)
		memcpy((char *)&scene + one->common[i].field, &one->common[i].value,
		       sizeof(one->common[i].value));
	memcpy((char *)&scene + one->field, &value, sizeof(value));
	return scene;
}

static void expect_finding(const struct rule_case *one)
{
	enum rule rule = torsh_limits[one->limit].rule;
	const struct finding *finding = find(rule);
	char *sentence;

	if (!finding)
		fail_msg("%s is %s (%s)", torsh_rules[rule].name,
			 torsh_rule_state_names[analysis.rules[rule].state],
			 analysis.rules[rule].reason);
	sentence = torsh_finding_sentence(finding, NULL);
	if (one->sentence)
		assert_string_equal(sentence, one->sentence);
	if (strstr(sentence, "an unknown one") || strpbrk(sentence, "{}[]"))
		fail_msg("%s: %s", torsh_rules[rule].name, sentence);
	free(sentence);
}

static void rules_fire_beyond_their_limits_and_not_at_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rule_case *one = &cases[i];
		enum rule rule = torsh_limits[one->limit].rule;
		struct host_scenario clear = scenario_of(one, one->clear),
				     fires = scenario_of(one, one->fires);

		evaluate(&clear);
		if (analysis.rules[rule].state != RULE_CLEAR)
			fail_msg("case %zu: %s is %s, not clear (%s)", i, torsh_rules[rule].name,
				 torsh_rule_state_names[analysis.rules[rule].state],
				 analysis.rules[rule].reason);
		forget();
		evaluate(&fires);
		expect_finding(one);
		forget();
	}
}

static void each_limit_has_a_case(void **state)
{
	(void)state;
	for (int limit = 0; limit < N_LIMITS; limit++) {
		bool is_there = !is_of_this_test(torsh_limits[limit].rule);

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			is_there = is_there || (int)cases[i].limit == limit;
		if (!is_there)
			fail_msg("no case is about %s", torsh_limits[limit].name);
	}
}

static void nothing_is_found_in_a_healthy_program(void **state)
{
	(void)state;
	evaluate(&healthy_host);
	assert_int_equal(analysis.n, 0);
	for (int rule = 0; rule < N_RULES; rule++) {
		if (is_of_this_test((enum rule)rule) && analysis.rules[rule].state != RULE_CLEAR)
			fail_msg("%s is %s (%s)", torsh_rules[rule].name,
				 torsh_rule_state_names[analysis.rules[rule].state],
				 analysis.rules[rule].reason);
	}
	forget();
}

static void copies_within_a_type_are_no_conversions(void **state)
{
	struct host_scenario scene = healthy_host;

	(void)state;
	scene.copy_ns = 5000000;
	evaluate(&scene);
	assert_int_equal(analysis.rules[RULE_DTYPE_COPIES].state, RULE_CLEAR);
	forget();
	scene.is_converting = scene.without_inputs = 1;
	evaluate(&scene);
	assert_int_equal(analysis.rules[RULE_DTYPE_COPIES].state, RULE_NOT_EVALUATED);
	assert_non_null(strstr(analysis.rules[RULE_DTYPE_COPIES].reason, "inputs"));
	forget();
}

static void what_stays_or_is_of_operators_could_not_be_allocated_once(void **state)
{
	struct host_scenario scene = healthy_host;

	(void)state;
	scene.bytes = 1e9;
	evaluate(&scene);
	assert_int_equal(analysis.rules[RULE_ALLOCATION_IN_HOT_STEP].state, RULE_FIRED);
	forget();
	scene.live = 5;
	evaluate(&scene);
	assert_int_equal(analysis.rules[RULE_ALLOCATION_IN_HOT_STEP].state, RULE_CLEAR);
	forget();
	scene.live = 0;
	scene.is_in_operator = 1;
	evaluate(&scene);
	assert_int_equal(analysis.rules[RULE_ALLOCATION_IN_HOT_STEP].state, RULE_CLEAR);
	forget();
}

static void collector_runs_are_judged_only_where_they_were_recorded(void **state)
{
	struct host_scenario given = healthy_host;

	(void)state;
	given.without_gc = 1;
	evaluate(&given);
	assert_int_equal(analysis.rules[RULE_GC_PAUSES].state, RULE_NOT_EVALUATED);
	assert_non_null(strstr(analysis.rules[RULE_GC_PAUSES].reason, "garbage collector"));
	forget();
}

static void collector_runs_are_no_waits(void **state)
{
	struct host_scenario told = healthy_host;

	(void)state;
	told.wait_ns = 3000000;
	told.gc_ns = 2000000;
	evaluate(&told);
	assert_int_equal(analysis.rules[RULE_STEP_WAITS].state, RULE_CLEAR);
	assert_int_equal(analysis.rules[RULE_GC_PAUSES].state, RULE_FIRED);
	forget();
}

static void findings_gain_what_they_are_about_or_say_why_that_is_unknown(void **state)
{
	struct host_scenario given = healthy_host;
	const struct finding *finding;

	(void)state;
	given.wait_ns = 3000000;
	given.oversubscribed_ns = 2e9;
	evaluate(&given);
	finding = find(RULE_STEP_WAITS);
	assert_non_null(finding);
	/* Of five steps neither the first counts nor the last, which the process's end cuts. */
	assert_true(fabs(finding->gain_ns - 9000000) < 1);
	assert_true(isnan(finding->gain_bytes));
	assert_null(finding->no_gain);
	assert_int_equal(finding->until_ns - finding->from_ns, 3000000);
	finding = find(RULE_OVERSUBSCRIBED_THREADS);
	assert_non_null(finding);
	assert_true(isnan(finding->gain_ns) && isnan(finding->gain_bytes));
	assert_non_null(strstr(finding->no_gain, "was not measured"));
	forget();
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
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_in_a_healthy_program),
		cmocka_unit_test(rules_fire_beyond_their_limits_and_not_at_them),
		cmocka_unit_test(each_limit_has_a_case),
		cmocka_unit_test(collector_runs_are_judged_only_where_they_were_recorded),
		cmocka_unit_test(collector_runs_are_no_waits),
		cmocka_unit_test(findings_gain_what_they_are_about_or_say_why_that_is_unknown),
		cmocka_unit_test(copies_within_a_type_are_no_conversions),
		cmocka_unit_test(what_stays_or_is_of_operators_could_not_be_allocated_once),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
