/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Rules about single operators, DataLoaders and waits of programs without devices, at each of their
 * limits from both sides. Those about other processes and about resident memory have programs only.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/evaluated_fixture.h"
#include "tools/analysis/rules.h"
#include "tools/analysis/sentence.h"
#include "tools/recording/read.h"

enum { N_STEPS = 8, HELD_UP_STEPS = 2, SCENE_STEP_NS = 10000000, SAMPLED_NS = 1000000000 };

static struct fixture fixture;
static uint32_t record;

/* What each step does beside computing. */
struct scene {
	const char *name, *inputs; /* of an operator */
	uint32_t scope;
	uint64_t ns; /* of all its calls in a step */
	uint64_t held_up_ns; /* the same, more, in the first steps */
	uint64_t n; /* calls in a step; 0: one */
	uint64_t n_more; /* more calls in each step than in the one before */
	uint64_t n_inner; /* operators in each call */
	uint64_t pieces; /* its input grows from two pieces to so many, in a step */
	uint64_t nodes; /* of autograd's graph */
	uint32_t wait; /* kind of a wait of so many ns, if there is no name */
	uint64_t throttled_ns;
	bool has_waits, goes_backward;
};

static uint64_t operator_at(uint64_t at_ns, uint64_t ns, const struct scene *scene,
			    const char *inputs)
{
	uint32_t outer = ++record;

	fixture_op(&fixture, at_ns, 0, outer, scene->name, inputs, scene->scope, OP_NO_SEQUENCE);
	for (uint64_t i = 0; i < scene->n_inner; i++) {
		uint64_t begin_ns = at_ns + ns * i / scene->n_inner;

		fixture_op(&fixture, begin_ns, 0, ++record, "aten::add_", NULL, OP_FUNCTION,
			   OP_NO_SEQUENCE);
		fixture_op_end(&fixture, begin_ns + 1, 0, record);
	}
	fixture_op_end(&fixture, at_ns + ns, 0, outer);
	return at_ns + ns;
}

static void put_wait(uint64_t at_ns, const struct scene *scene)
{
	struct event wait = {
		.id = EVENT_THREAD_WAIT,
		.thread_wait = {.kind = scene->wait, .begin = at_ns, .duration_ns = scene->ns}};

	fixture_event(&fixture, at_ns + scene->ns, 0, &wait);
}

static uint64_t subject(uint64_t at_ns, const struct scene *scene, uint64_t step)
{
	uint64_t n = (scene->n ? scene->n : 1) + step * scene->n_more;
	uint64_t whole_ns = scene->ns + (step < HELD_UP_STEPS ? scene->held_up_ns : 0);
	char inputs[64];

	if (!scene->name) {
		put_wait(at_ns, scene);
		return at_ns + scene->ns;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t ns = whole_ns / n + (i < whole_ns % n);

		snprintf(inputs, sizeof(inputs), "{float32[%d,4],float32[1,4]};0", (int)i + 1);
		at_ns = operator_at(at_ns, ns, scene, scene->pieces ? inputs : scene->inputs);
	}
	return at_ns;
}

static void put_step(const struct scene *scene, uint64_t step)
{
	const struct event mark = {.id = EVENT_STEP, .step = {.number = step}};
	uint64_t start_ns = (step + 1) * SCENE_STEP_NS, at_ns;

	fixture_event(&fixture, start_ns, 0, &mark);
	at_ns = subject(start_ns, scene, step);
	fixture_op(&fixture, at_ns, 0, ++record, "aten::mm", "float32[2,2];float32[2,2]",
		   OP_FUNCTION, step * scene->nodes);
	fixture_op_end(&fixture, start_ns + SCENE_STEP_NS - 10, 0, record);
	if (!scene->goes_backward)
		return;
	fixture_op(&fixture, start_ns + SCENE_STEP_NS - 8, 0, ++record, "MmBackward0", NULL,
		   OP_BACKWARD, 0);
	fixture_op_end(&fixture, start_ns + SCENE_STEP_NS - 7, 0, record);
}

static void put_usage(const struct scene *scene)
{
	static Torsh__Usage usage;

	torsh__usage__init(&usage);
	fixture.process.usage = &usage;
	usage.has_cpus = usage.has_sampled_ns = usage.has_cpu_throttled_ns = 1;
	usage.has_cpu_throttled_periods = 1;
	usage.cpus = 4;
	usage.sampled_ns = SAMPLED_NS;
	usage.cpu_throttled_ns = scene->throttled_ns;
	usage.cpu_throttled_periods = 3;
}

static void evaluate_scene(const struct scene *scene)
{
	struct event fact = {.id = EVENT_FACT};

	memset(&fixture, 0, sizeof(fixture));
	record = 0;
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	fact.fact.name = fixture_label(&fixture, "waits");
	fact.fact.value = fixture_label(&fixture, "recorded");
	if (scene->has_waits)
		fixture_event(&fixture, 1, 0, &fact);
	for (uint64_t step = 0; step < N_STEPS; step++)
		put_step(scene, step);
	put_usage(scene);
	fixture_write(path, &fixture, 1, 1000);
	analyse_file();
}

static void forget_scene(void)
{
	forget_analysis();
	fixture_free(&fixture);
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define LOAD_ALONE "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define LOAD_BY_WORKERS "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
#define ROWS(n) "float32[5,4];int64[5];" n ";-1;false"

struct rule_case {
	enum limit limit;
	struct scene clear, fires;
	double gain_ns; /* of what fires; 0: unknown */
};

#define TIME_CASE(LIMIT, percent, ...)                                                        \
	{                                                                                     \
		LIMIT_##LIMIT, {.ns = (percent)*100000, __VA_ARGS__},                         \
			{.ns = (percent)*100000 + 1, __VA_ARGS__}, 6 * ((percent)*100000 + 1) \
	}

static const struct rule_case cases[] = {
	TIME_CASE(SCALAR_READS_TIME, 5, .name = "aten::item"),
	TIME_CASE(CONTIGUOUS_COPIES_TIME, 5, .name = "aten::contiguous", .n_inner = 1),
	/* The first of 20 calls makes the tensor: the others count. */
	{LIMIT_GROWING_CAT_TIME,
	 {.name = "aten::cat", .ns = 520000, .n = 20, .pieces = 21},
	 {.name = "aten::cat", .ns = 540000, .n = 20, .pieces = 21},
	 6 * 513000},
	{LIMIT_GROWING_CAT_TIMES,
	 {.name = "aten::cat", .ns = 900000, .n = 8, .pieces = 9},
	 {.name = "aten::cat", .ns = 900000, .n = 9, .pieces = 10},
	 6 * 800000},
	TIME_CASE(CONSTANT_TENSORS_TIME, 5, .name = "aten::arange", .inputs = "10"),
	{LIMIT_FLOAT64_OPERATORS_TIME,
	 {.name = "aten::mul", .inputs = "float64[8];2.0", .ns = 1000000},
	 {.name = "aten::mul", .inputs = "float64[8];2.0", .ns = 1000001},
	 3 * 1000001},
	TIME_CASE(GRADIENT_FILLS_TIME, 5, .name = "Optimizer.zero_grad#SGD.zero_grad",
		  .scope = OP_USER, .n_inner = 1),
	TIME_CASE(OPTIMIZER_LOOP_TIME, 10, .name = "Optimizer.step#SGD.step", .scope = OP_USER,
		  .n_inner = 101),
	{LIMIT_OPTIMIZER_LOOP_CALLS,
	 {.name = "Optimizer.step#SGD.step", .scope = OP_USER, .ns = 2000000, .n_inner = 100},
	 {.name = "Optimizer.step#SGD.step", .scope = OP_USER, .ns = 2000000, .n_inner = 101},
	 6 * 2000000},
	TIME_CASE(DENSE_EMBEDDING_GRADIENTS_TIME, 5, .name = "aten::embedding_dense_backward",
		  .inputs = ROWS("50")),
	{LIMIT_DENSE_EMBEDDING_GRADIENTS_ROWS,
	 {.name = "aten::embedding_dense_backward", .inputs = ROWS("49"), .ns = 1000000},
	 {.name = "aten::embedding_dense_backward", .inputs = ROWS("50"), .ns = 1000000},
	 6 * 1000000},
	TIME_CASE(TRAINING_LAYERS_TIME, 2, .name = "aten::dropout",
		  .inputs = "float32[8];0.1;true"),
	{LIMIT_UNUSED_GRAPH_NODES,
	 {.name = "aten::relu", .ns = 1000, .nodes = 12},
	 {.name = "aten::relu", .ns = 1000, .nodes = 13},
	 0},
	{LIMIT_GRAPH_GROWTH_TIMES,
	 {.name = "autograd::engine::evaluate_function: X", .ns = 1000, .n = 6, .n_more = 1},
	 {.name = "autograd::engine::evaluate_function: X", .ns = 1000, .n = 3, .n_more = 1},
	 0},
	TIME_CASE(GUARD_CHECKS_TIME, 5, .name = "TorchDynamo Cache Lookup"),
	TIME_CASE(LOADER_WITHOUT_WORKERS_TIME, 10, .name = LOAD_ALONE, .scope = OP_USER),
	TIME_CASE(LOADER_BEHIND_TIME, 10, .name = LOAD_BY_WORKERS, .scope = OP_USER),
	TIME_CASE(LOADER_SMALL_OPERATORS_TIME, 10, .name = LOAD_ALONE, .scope = OP_USER,
		  .n_inner = 101),
	{LIMIT_LOADER_SMALL_OPERATORS_CALLS,
	 {.name = LOAD_ALONE, .scope = OP_USER, .ns = 2000000, .n_inner = 100},
	 {.name = LOAD_ALONE, .scope = OP_USER, .ns = 2000000, .n_inner = 101},
	 6 * 2000000},
	TIME_CASE(SLEEPS_TIME, 5, .wait = THREAD_WAIT_SLEEP, .has_waits = true),
	TIME_CASE(FILE_WAITS_TIME, 10, .wait = THREAD_WAIT_DISK, .has_waits = true),
	TIME_CASE(NETWORK_WAITS_TIME, 10, .wait = THREAD_WAIT_RECEIVE, .has_waits = true),
	TIME_CASE(PYTHON_LOCK_WAITS_TIME, 10, .wait = THREAD_WAIT_GIL, .has_waits = true),
};

/* Of limits on the number of calls the time may be off by its division. */
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
	if (strstr(sentence, "an unknown one") || strpbrk(sentence, "{}[]"))
		fail_msg("%s: %s", torsh_rules[rule].name, sentence);
	free(sentence);
	if (one->gain_ns > 0 && fabs(finding->gain_ns - one->gain_ns) > 1)
		fail_msg("%s gains %.0f ns, not %.0f", torsh_rules[rule].name, finding->gain_ns,
			 one->gain_ns);
	assert_true(isnan(finding->gain_ns) == (finding->no_gain != NULL));
}

static void rules_fire_beyond_their_limits_and_not_at_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rule_case *one = &cases[i];
		enum rule rule = torsh_limits[one->limit].rule;

		evaluate_scene(&one->clear);
		if (analysis.rules[rule].state != RULE_CLEAR)
			fail_msg("case %zu: %s is %s, not clear (%s)", i, torsh_rules[rule].name,
				 torsh_rule_state_names[analysis.rules[rule].state],
				 analysis.rules[rule].reason);
		forget_scene();
		evaluate_scene(&one->fires);
		expect_finding(one);
		forget_scene();
	}
}

static bool is_of_other_processes_or_pages(enum rule rule)
{
	return rule == RULE_LOADER_RESTARTS || rule == RULE_LOADER_TOO_MANY_WORKERS ||
	       rule == RULE_MEMORY_KEPT || rule == RULE_COPIED_AFTER_FORK;
}

static void each_limit_has_a_case(void **state)
{
	(void)state;
	for (int limit = 0; limit < N_LIMITS; limit++) {
		enum rule rule = torsh_limits[limit].rule;
		bool is_there = rule < RULE_SCALAR_READS || rule > RULE_COPIED_AFTER_FORK ||
				rule == RULE_CPU_THROTTLED || is_of_other_processes_or_pages(rule);

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			is_there = is_there || (int)cases[i].limit == limit;
		if (!is_there)
			fail_msg("no case is about %s", torsh_limits[limit].name);
	}
}

static void a_quota_that_is_used_up_is_found(void **state)
{
	struct scene scene = {.name = "aten::relu", .ns = 1000};
	double run_ns;

	(void)state;
	evaluate_scene(&scene);
	assert_int_equal(analysis.rules[RULE_CPU_THROTTLED].state, RULE_CLEAR);
	run_ns = torsh_run_seconds(&analysis.metrics->processes[0]) * 1e9;
	forget_scene();
	scene.throttled_ns = (uint64_t)(0.05 * run_ns) + 1;
	evaluate_scene(&scene);
	assert_non_null(find(RULE_CPU_THROTTLED));
	assert_true(fabs(find(RULE_CPU_THROTTLED)->gain_ns - (double)scene.throttled_ns) < 2);
	forget_scene();
	scene.throttled_ns -= 2;
	evaluate_scene(&scene);
	assert_int_equal(analysis.rules[RULE_CPU_THROTTLED].state, RULE_CLEAR);
	forget_scene();
}

static void a_program_that_goes_backward_trains(void **state)
{
	struct scene scene = {.name = "aten::dropout",
			      .inputs = "float32[8];0.1;true",
			      .ns = 1000000,
			      .nodes = 50,
			      .goes_backward = true};

	(void)state;
	evaluate_scene(&scene);
	assert_int_equal(analysis.rules[RULE_TRAINING_LAYERS].state, RULE_CLEAR);
	assert_int_equal(analysis.rules[RULE_UNUSED_GRAPH].state, RULE_CLEAR);
	forget_scene();
}

static double number_of(const struct finding *finding, const char *name)
{
	for (size_t i = 0; i < finding->n_evidence; i++) {
		if (!strcmp(finding->evidence[i].name, name))
			return finding->evidence[i].value;
	}
	fail();
	return 0;
}

/* The first passes take longest, as something else held them up. */
static void a_growing_graph_gains_what_its_later_nodes_take(void **state)
{
	const struct scene scene = {.name = "autograd::engine::evaluate_function: X",
				    .ns = 1000000,
				    .held_up_ns = 4000000,
				    .n = 2,
				    .n_more = 2};
	const struct finding *finding;
	double expected = 0, first, last;

	(void)state;
	evaluate_scene(&scene);
	finding = find(RULE_GRAPH_GROWTH);
	assert_non_null(finding);
	first = number_of(finding, "first_nodes");
	last = number_of(finding, "last_nodes");
	assert_true(first < last);
	for (double n = first; n <= last; n += 2) {
		bool is_held_up = n <= 2 + 2 * (HELD_UP_STEPS - 1);

		expected += (is_held_up ? 5e6 : 1e6) * (n - first) / n;
	}
	assert_float_equal(finding->gain_ns, expected, 1);
	forget_scene();
}

static void waits_are_judged_only_where_they_were_recorded(void **state)
{
	const struct scene scene = {.name = "aten::relu", .ns = 1000};

	(void)state;
	evaluate_scene(&scene);
	assert_int_equal(analysis.rules[RULE_SLEEPS].state, RULE_NOT_EVALUATED);
	assert_non_null(strstr(analysis.rules[RULE_SLEEPS].reason, "waits were not recorded"));
	forget_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_fire_beyond_their_limits_and_not_at_them),
		cmocka_unit_test(each_limit_has_a_case),
		cmocka_unit_test(a_quota_that_is_used_up_is_found),
		cmocka_unit_test(a_program_that_goes_backward_trains),
		cmocka_unit_test(a_growing_graph_gains_what_its_later_nodes_take),
		cmocka_unit_test(waits_are_judged_only_where_they_were_recorded),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
