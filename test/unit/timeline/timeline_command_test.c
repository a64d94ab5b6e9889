/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The commands that read the timeline, on a recording with known contents: their output, and the
 * schemas that it matches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

static char path[] = "/tmp/torsh-timeline-XXXXXX";

/* Blocks come and go on the first GPU; what it reserves comes and goes later. */
static void put_caching_allocator(struct fixture *fixture, uint64_t at)
{
	static const struct event_tensor tensors[] = {
		{.address = 0x10, .bytes = 100, .allocated = 100, .reserved = 1000},
		{.address = 0x20, .bytes = 200, .allocated = 300, .reserved = 1000},
		{.address = 0x10, .bytes = 100, .allocated = 200, .reserved = 1000, .is_free = 1},
		{.address = 0x30, .bytes = 50, .allocated = 250, .reserved = 2000},
		{.address = 0x30, .bytes = 50, .allocated = 200, .reserved = 500, .is_free = 1},
	};

	for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++) {
		struct event event = {.id = EVENT_TENSOR, .tensor = tensors[i]};

		event.tensor.device = 1 << 8;
		fixture_event(fixture, at + i, 0, &event);
	}
}

/* Two steps of a training, and an operator without a formula before them. */
static int write_recording(void **state)
{
	static struct fixture fixture;
	uint32_t record = 1;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	fixture_start(&fixture, 1, 100);
	fixture.process.rank = "3";
	fixture_thread(&fixture, 100, "main");
	fixture_op(&fixture, 500, 0, record, "aten::linalg_svd", "float32[4,4]", 0, OP_NO_SEQUENCE);
	fixture_op_end(&fixture, 600, 0, record++);
	for (uint64_t at = 1000; at < 3000; at += 1000) {
		uint64_t sequence = at / 1000;

		fixture_push(&fixture, at, 0, "net:Linear", NULL, RANGE_BY_MODULE);
		fixture_op(&fixture, at + 10, 0, record, "aten::addmm",
			   "float32[32];float32[4,64];float32[64,32];1;1", 0, sequence);
		fixture_tensor(&fixture, at + 20, 0, 0x1000, 512, false);
		fixture_op_end(&fixture, at + 110, 0, record++);
		fixture_pop(&fixture, at + 120, 0, NULL, RANGE_BY_MODULE);
		fixture_op(&fixture, at + 200, 0, record, "AddmmBackward0", NULL, OP_BACKWARD,
			   sequence);
		fixture_op(&fixture, at + 210, 0, record + 1, "aten::mm",
			   "float32[64,4];float32[4,32]", 0, OP_NO_SEQUENCE);
		fixture_op_end(&fixture, at + 310, 0, record + 1);
		fixture_tensor(&fixture, at + 320, 0, 0x1000, 512, true);
		fixture_op_end(&fixture, at + 400, 0, record);
		record += 2;
		fixture_op(&fixture, at + 500, 0, record, "Optimizer.step#SGD.step", NULL, OP_USER,
			   OP_NO_SEQUENCE);
		fixture_op_end(&fixture, at + 700, 0, record++);
	}
	put_caching_allocator(&fixture, 2750);
	fixture_write(path, &fixture, 1, 1000);
	fixture_free(&fixture);
	return 0;
}

static int remove_recording(void **state)
{
	(void)state;
	free(output);
	return unlink(path);
}

static const cJSON *named(const cJSON *list, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name"));

		if (text && strcmp(text, name) == 0)
			return item;
	}
	fail_msg("there is no %s", name);
	return NULL;
}

static void ops_are_totals_by_name(void **state)
{
	const cJSON *ops, *op;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(ops, path, "--json"), 0);
	assert_schema("ops");
	json = parse_output();
	ops = cJSON_GetObjectItem(json, "ops");
	assert_int_equal(cJSON_GetArraySize(ops), 5);
	assert_int_equal(number_of(json, "flops"), 2 * 2 * 16384);
	op = named(ops, "aten::mm");
	assert_int_equal(number_of(op, "calls"), 2);
	assert_int_equal(number_of(op, "cpu_ns"), 200);
	assert_int_equal(number_of(op, "flops"), 2 * 16384);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(op, "device_ns")));
	assert_int_equal(number_of(named(ops, "aten::addmm"), "allocated_bytes"), 1024);
	assert_int_equal(number_of(named(ops, "AddmmBackward0"), "freed_bytes"), 1024);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(named(ops, "aten::linalg_svd"), "flops")));
	op = named(cJSON_GetObjectItem(json, "ops_without_formula"), "aten::linalg_svd");
	assert_int_equal(number_of(op, "calls"), 1);
	cJSON_Delete(json);
}

static void ops_are_grouped_sorted_and_cut_off(void **state)
{
	static const char *const groups[] = {"name",   "shape", "stack", "overload",
					     "module", "phase", "step"};
	cJSON *json;

	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		assert_int_equal(RUN(ops, path, "--json", "--group", groups[i], "--sort=calls"), 0);
		assert_schema("ops");
		assert_int_equal(RUN(ops, path, "--group", groups[i]), 0);
	}
	assert_int_equal(RUN(ops, path, "--json", "--sort=name", "--limit=2"), 0);
	json = parse_output();
	assert_string_equal(text_of(item_of(json, "ops", 0), "name"), "AddmmBackward0");
	assert_int_equal(number_of(json, "omitted"), 3);
	cJSON_Delete(json);
	assert_int_equal(RUN(ops, path, "--json", "--thread=7"), 0);
	json = parse_output();
	assert_int_equal(number_of(json, "calls"), 0);
	cJSON_Delete(json);
}

/* What every report about one step of the two has to sum up to. */
static void assert_one_step(const char *option, uint64_t step)
{
	const cJSON *selection;
	cJSON *json;

	assert_int_equal(RUN(ops, path, "--json", option), 0);
	assert_schema("ops");
	json = parse_output();
	assert_int_equal(number_of(json, "calls"), 4);
	assert_int_equal(number_of(json, "flops"), 2 * 16384);
	assert_int_equal(number_of(json, "self_cpu_ns"), 100 + 200 + 200);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "ops_without_formula")), 0);
	selection = item_of(json, "selection", 0);
	assert_int_equal(number_of(selection, "steps"), 2);
	assert_int_equal(number_of(selection, "shown"), 1);
	assert_int_equal(cJSON_GetArrayItem(item_of(selection, "ranges", 0), 1)->valuedouble, step);
	cJSON_Delete(json);
	assert_int_equal(RUN(steps, path, "--json", option), 0);
	assert_schema("steps");
	json = parse_output();
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "steps")), 1);
	assert_int_equal(number_of(item_of(json, "steps", 0), "index"), step);
	assert_int_equal(number_of(item_of(json, "steps", 0), "flops"), 2 * 16384);
	cJSON_Delete(json);
	assert_int_equal(RUN(modules, path, "--json", option), 0);
	assert_schema("modules");
	json = parse_output();
	assert_int_equal(
		number_of(named(cJSON_GetObjectItem(json, "modules"), "net:Linear"), "calls"), 1);
	assert_int_equal(
		number_of(named(cJSON_GetObjectItem(json, "modules"), "net:Linear"), "flops"),
		2 * 16384);
	cJSON_Delete(json);
	assert_int_equal(RUN(regions, path, "--json", option), 0);
	assert_schema("regions");
	json = parse_output();
	assert_int_equal(number_of(item_of(json, "regions", 0), "calls"), 1);
	cJSON_Delete(json);
	assert_int_equal(RUN(ops, path, option), 0);
	assert_non_null(strstr(output, "1 of 2 steps of process 100 counts here"));
}

static void a_replay_that_is_off_is_not_reliable(void **state)
{
	const cJSON *device;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(whatif, path, "--json"), 0);
	assert_schema("whatif");
	json = parse_output();
	device = item_of(json, "devices", 0);
	assert_int_equal(number_of(cJSON_GetObjectItem(device, "recorded"), "reserved_bytes"),
			 2000);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(device, "is_reliable")));
	cJSON_Delete(json);
	assert_int_equal(RUN(whatif, path), 0);
	assert_non_null(strstr(output, "its predictions are not reliable"));
}

static void reports_are_restricted_to_steps(void **state)
{
	(void)state;
	assert_one_step("--steps=0", 0);
	assert_one_step("--steps=1-5", 1);
	assert_one_step("--skip-warmup=1", 1);
	assert_int_equal(RUN_WITH_ERRORS(ops, path, "--skip-warmup=2"), 2);
	assert_non_null(strstr(output, "no such steps"));
	assert_int_equal(RUN_WITH_ERRORS(ops, path, "--steps=7"), 2);
	assert_non_null(strstr(output, "no such steps"));
	assert_int_equal(RUN_WITH_ERRORS(steps, path, "--steps=2-1"), 2);
	assert_non_null(strstr(output, "as in 3-5"));
	assert_int_equal(RUN_WITH_ERRORS(steps, path, "--steps=-1"), 2);
	assert_non_null(strstr(output, "as in 3-5"));
	assert_int_equal(RUN_WITH_ERRORS(tensors, path, "--steps=1"), 2);
}

static void steps_have_the_rule_that_they_follow(void **state)
{
	const cJSON *step, *phases;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(steps, path, "--json"), 0);
	assert_schema("steps");
	json = parse_output();
	assert_string_equal(text_of(json, "rule"), "optimizer");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "steps")), 2);
	step = item_of(json, "steps", 0);
	assert_int_equal(number_of(step, "start_ns"), 1000);
	assert_int_equal(number_of(step, "duration_ns"), 700);
	assert_int_equal(number_of(step, "flops"), 2 * 16384);
	assert_int_equal(number_of(step, "peak_bytes"), 512);
	phases = cJSON_GetObjectItem(step, "phases");
	assert_int_equal(number_of(phases, "forward"), 120);
	assert_int_equal(number_of(phases, "backward"), 200);
	assert_int_equal(number_of(phases, "optimizer"), 200);
	assert_int_equal(number_of(phases, "data"), 0);
	step = item_of(json, "steps", 1);
	assert_int_equal(number_of(step, "index"), 1);
	assert_int_equal(number_of(step, "start_ns"), 1700);
	cJSON_Delete(json);
	assert_int_equal(RUN(steps, path, "--limit=1"), 0);
	assert_non_null(strstr(output, "2 steps"));
	assert_non_null(strstr(output, "the 1 slowest; --all lists all"));
}

static void modules_have_their_backward(void **state)
{
	const cJSON *module;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(modules, path, "--json"), 0);
	assert_schema("modules");
	json = parse_output();
	module = named(cJSON_GetObjectItem(json, "modules"), "net:Linear");
	assert_int_equal(number_of(module, "calls"), 2);
	assert_int_equal(number_of(module, "total_ns"), 240);
	assert_int_equal(number_of(module, "operators_ns"), 200);
	assert_int_equal(number_of(module, "backward_ns"), 400);
	assert_int_equal(number_of(module, "flops"), 4 * 16384);
	assert_int_equal(number_of(module, "self_allocated_bytes"), 1024);
	cJSON_Delete(json);
	assert_int_equal(RUN(modules, path), 0);
	assert_non_null(strstr(output, "net:Linear"));
}

static void tensors_have_holders_at_the_peak(void **state)
{
	const cJSON *device, *site;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(tensors, path, "--json"), 0);
	assert_schema("tensors");
	json = parse_output();
	device = item_of(json, "devices", 0);
	assert_string_equal(text_of(device, "device"), "cpu");
	assert_int_equal(number_of(device, "peak_bytes"), 512);
	assert_int_equal(number_of(device, "at_ns"), 1020);
	assert_int_equal(number_of(device, "allocs"), 2);
	assert_int_equal(number_of(device, "held_bytes"), 0);
	site = item_of(device, "holders", 0);
	assert_string_equal(text_of(site, "operator"), "aten::addmm");
	assert_string_equal(text_of(site, "module"), "net:Linear");
	cJSON_Delete(json);
	assert_int_equal(RUN(tensors, path, "--json", "--group=stack"), 0);
	assert_schema("tensors");
	assert_int_equal(RUN(tensors, path), 0);
	assert_non_null(strstr(output, "aten::addmm in net:Linear, forward"));
}

static void a_caching_allocator_is_fragmented(void **state)
{
	const cJSON *device;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(tensors, path, "--json"), 0);
	json = parse_output();
	assert_true(cJSON_IsNull(
		cJSON_GetObjectItem(item_of(json, "devices", 0), "fragmentation_peak_bytes")));
	device = item_of(json, "devices", 1);
	assert_string_equal(text_of(device, "device"), "cuda:0");
	assert_int_equal(number_of(device, "peak_bytes"), 300);
	assert_int_equal(number_of(device, "reserved_peak_bytes"), 2000);
	assert_int_equal(number_of(device, "allocated_at_peak_bytes"), 300);
	assert_int_equal(number_of(device, "reserved_at_peak_bytes"), 1000);
	assert_int_equal(number_of(device, "fragmentation_at_peak_bytes"), 700);
	assert_int_equal(number_of(device, "allocated_at_end_bytes"), 200);
	assert_int_equal(number_of(device, "reserved_at_end_bytes"), 500);
	assert_int_equal(number_of(device, "fragmentation_at_end_bytes"), 300);
	assert_int_equal(number_of(device, "fragmentation_peak_bytes"), 1750);
	assert_int_equal(number_of(device, "fragmentation_peak_ns"), 2753);
	cJSON_Delete(json);
	assert_int_equal(RUN(tensors, path), 0);
	assert_non_null(strstr(
		output, "at the peak: 300 B allocated, 1000 B reserved, fragmentation 700 B"));
}

static void wrong_usage_ends_with_2(void **state)
{
	(void)state;
	assert_int_equal(RUN(ops, "--json"), 2);
	assert_int_equal(RUN(ops, path, "--sort=colour"), 2);
	assert_int_equal(RUN(ops, path, "--group=colour"), 2);
	assert_int_equal(RUN(ops, path, "--thread=x"), 2);
	assert_int_equal(RUN(ops, path, "--pid=999"), 2);
	assert_int_equal(RUN(steps, path, "--sort=self"), 2);
	assert_int_equal(RUN(tensors, path, "--group=colour"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_are_totals_by_name),
		cmocka_unit_test(ops_are_grouped_sorted_and_cut_off),
		cmocka_unit_test(a_replay_that_is_off_is_not_reliable),
		cmocka_unit_test(reports_are_restricted_to_steps),
		cmocka_unit_test(steps_have_the_rule_that_they_follow),
		cmocka_unit_test(modules_have_their_backward),
		cmocka_unit_test(tensors_have_holders_at_the_peak),
		cmocka_unit_test(a_caching_allocator_is_fragmented),
		cmocka_unit_test(wrong_usage_ends_with_2),
	};

	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
