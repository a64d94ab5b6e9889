/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operator profile of a recording with known contents: counters of some kernels, and kernels
 * that share them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

static char path[] = "/tmp/torsh-profile-json-XXXXXX";

enum {
	LAYERS = 4,
	LAYER_NS = 1000,
	GEMM_NS = 400,
	RELU_NS = 50,
	BYTES_READ = 24576,
	BYTES_WRITTEN = 8192
};

/* 2 * 64 * 64 * 64 FLOP in 32768 bytes are 16 FLOP a byte: below this device's ridge of 25.6. */
#define GEMM_FLOPS 524288.0
#define BANDWIDTH UINT64_C(1000000000000)

static void put_device(struct fixture *fixture)
{
	struct event event = {.id = EVENT_DEVICE,
			      .device = {.name = fixture_label(fixture, "Made up \"device\""),
					 .capability_major = 9,
					 .memory_bandwidth = BANDWIDTH,
					 .clock_khz = 1000000,
					 .multiprocessors = 100,
					 .warp_threads = 32,
					 .multiprocessor_warps = 64,
					 .multiprocessor_blocks = 32,
					 .multiprocessor_shared_bytes = 233472,
					 .multiprocessor_registers = 65536}};

	fixture_event(fixture, 10, 0, &event);
}

static void put_metric(struct fixture *fixture, uint32_t number, const char *name, const char *unit)
{
	struct event event = {.id = EVENT_COUNTER_METRIC,
			      .counter_metric = {.number = number,
						 .name = fixture_label(fixture, name),
						 .field = fixture_label(fixture, name),
						 .unit = fixture_label(fixture, unit)}};

	fixture_event(fixture, 21, 0, &event);
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Of the first gemm alone. */
static void put_counters(struct fixture *fixture)
{
	struct event mode = {.id = EVENT_COUNTER_MODE,
			     .counter_mode = {.mode = COUNTERS_OF_OPERATORS,
					      .chip = fixture_label(fixture, "GH100"),
					      .passes = 1,
					      .n_metrics = 3}};
	struct event launch = {.id = EVENT_COUNTER_LAUNCH,
			       .counter_launch = {.name = fixture_label(fixture, "gemm"),
						  .grid_x = 2,
						  .grid_y = 1,
						  .grid_z = 1,
						  .block_x = 128,
						  .block_y = 1,
						  .block_z = 1}};
	struct event range = {.id = EVENT_COUNTER_RANGE,
			      .counter_range = {.correlation = 1,
						.n = 3,
						.value_0 = bits_of(BYTES_READ),
						.value_1 = bits_of(BYTES_WRITTEN),
						.value_2 = bits_of(62.5)}};

	fixture_event(fixture, 20, 0, &mode);
	put_metric(fixture, 0, "dram__bytes_read.sum", "bytes");
	put_metric(fixture, 1, "dram__bytes_write.sum", "bytes");
	put_metric(fixture, 2, "lts__t_sector_hit_rate.pct", "percent");
	fixture_event(fixture, 22, 0, &launch);
	fixture_event(fixture, 23, 0, &range);
}

static void put_kernel(struct fixture *fixture, uint64_t at, const char *name, uint32_t correlation,
		       uint64_t duration_ns)
{
	struct event launch = {.id = EVENT_LAUNCH,
			       .launch = {.correlation = correlation, .begin = at}};
	struct event kernel = {.id = EVENT_KERNEL,
			       .kernel = {.name = fixture_label(fixture, name),
					  .begin = at + 5,
					  .duration_ns = duration_ns,
					  .correlation = correlation,
					  .context = 1,
					  .stream = 7,
					  .grid_x = 2,
					  .grid_y = 1,
					  .grid_z = 1,
					  .block_x = 128,
					  .block_y = 1,
					  .block_z = 1,
					  .registers = 32}};

	fixture_event(fixture, at, 0, &launch);
	fixture_event(fixture, at + 1, 0, &kernel);
}

static void put_layer(struct fixture *fixture, uint64_t at, uint32_t number)
{
	char module[32];

	snprintf(module, sizeof(module), "net.h.%u:Block", number);
	fixture_push(fixture, at, 0, module, NULL, RANGE_BY_MODULE);
	fixture_op(fixture, at + 10, 0, 2 * number + 1, "aten::mm", "float32[64,64];float32[64,64]",
		   0, OP_NO_SEQUENCE);
	put_kernel(fixture, at + 20, "gemm", 2 * number + 1, GEMM_NS);
	fixture_op_end(fixture, at + 30, 0, 2 * number + 1);
	fixture_op(fixture, at + 40, 0, 2 * number + 2, "aten::relu", "float32[64,64]", 0,
		   OP_NO_SEQUENCE);
	put_kernel(fixture, at + 50, "relu", 2 * number + 2, RELU_NS);
	fixture_op_end(fixture, at + 60, 0, 2 * number + 2);
	fixture_pop(fixture, at + 70, 0, NULL, RANGE_BY_MODULE);
}

static int write_recording(void **state)
{
	static struct fixture fixture;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	put_device(&fixture);
	put_counters(&fixture);
	for (uint32_t i = 0; i < LAYERS; i++)
		put_layer(&fixture, (i + 1) * LAYER_NS, i);
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

static cJSON *read_profile(void)
{
	assert_int_equal(RUN(export, path, "--format", "profile"), 0);
	assert_schema("profile");
	return parse_output();
}

static const cJSON *member(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	assert_non_null(value);
	return value;
}

static void expect_text(const cJSON *object, const char *name, const char *text)
{
	assert_string_equal(cJSON_GetStringValue(member(object, name)), text);
}

static const cJSON *kernel_of(const cJSON *op)
{
	assert_int_equal(cJSON_GetArraySize(member(op, "kernels")), 1);
	return cJSON_GetArrayItem(member(op, "kernels"), 0);
}

/* Operators are mm and relu of each layer in turns. */
static const cJSON *operator_at(const cJSON *recording, int i)
{
	const cJSON *operators = member(recording, "operators");

	assert_int_equal(cJSON_GetArraySize(operators), 2 * LAYERS);
	return cJSON_GetArrayItem(operators, i);
}

static void counters_of_one_kernel_stand_for_those_that_are_launched_alike(void **state)
{
	cJSON *recording = read_profile();

	(void)state;
	for (int i = 0; i < LAYERS; i++) {
		const cJSON *op = operator_at(recording, 2 * i), *kernel = kernel_of(op);
		const cJSON *raw = member(member(kernel, "metrics"), "raw"),
			    *sums = member(op, "aggregated");

		expect_text(kernel, "metrics_source", i ? "propagated" : "measured");
		assert_float_equal(number_of(raw, "dram__bytes_read.sum"), BYTES_READ, 0);
		assert_float_equal(number_of(raw, "launch__registers_per_thread"), 32, 0);
		expect_text(member(member(kernel, "metrics"), "units"),
			    "lts__t_sector_hit_rate.pct", "percent");
		assert_float_equal(number_of(sums, "total_dram_bytes_written"), BYTES_WRITTEN, 0);
		assert_float_equal(number_of(sums, "l2_hit_rate"), 62.5, 0);
		assert_true(cJSON_IsNull(member(sums, "l1_hit_rate")));
		assert_float_equal(number_of(op, "mem_bytes"), BYTES_READ + BYTES_WRITTEN, 0);
	}
	cJSON_Delete(recording);
}

static void unmeasured_kernels_are_marked(void **state)
{
	cJSON *recording = read_profile();
	const cJSON *kernel = kernel_of(operator_at(recording, 1));

	(void)state;
	expect_text(kernel, "metrics_source", "none");
	expect_text(member(kernel, "metrics_status"), "*", "it was not measured, or not requested");
	assert_null(cJSON_GetObjectItem(member(member(kernel, "metrics"), "raw"),
					"dram__bytes_read.sum"));
	assert_true(cJSON_IsNull(member(operator_at(recording, 1), "mem_bytes")));
	cJSON_Delete(recording);
}

static void rooflines_go_by_the_peaks_of_the_device(void **state)
{
	cJSON *recording = read_profile();
	const cJSON *roofline = member(operator_at(recording, 0), "roofline");
	double intensity = GEMM_FLOPS / (BYTES_READ + BYTES_WRITTEN),
	       ceiling_gflops = intensity * 1000;

	(void)state;
	assert_float_equal(number_of(roofline, "ai"), intensity, 1e-9);
	expect_text(roofline, "class", "memory_bound");
	assert_float_equal(number_of(roofline, "ceiling"), ceiling_gflops, 1e-6);
	assert_float_equal(number_of(roofline, "efficiency_pct"),
			   100 * GEMM_FLOPS / GEMM_NS / ceiling_gflops, 1e-6);
	roofline = member(operator_at(recording, 1), "roofline");
	assert_true(cJSON_IsNull(member(roofline, "ai")));
	expect_text(roofline, "reason", "the bytes that it moved were not counted");
	cJSON_Delete(recording);
}

static void device_properties_are_exported(void **state)
{
	cJSON *recording = read_profile();
	const cJSON *metadata = member(recording, "capture_metadata"),
		    *kernel = kernel_of(operator_at(recording, 0));

	(void)state;
	expect_text(metadata, "device_name", "Made up \"device\"");
	expect_text(metadata, "chip", "GH100");
	expect_text(metadata, "counter_mode", "operators");
	expect_text(metadata, "model_name", "Block");
	/*
	 * 4 warps of 32 registers: 16 blocks of 4 warps fill the 64 warps of each of 100
	 * multiprocessors.
	 */
	assert_float_equal(number_of(kernel, "theoretical_occupancy_pct"), 100, 0);
	assert_float_equal(number_of(kernel, "waves_per_sm"), 2.0 / (16 * 100), 1e-9);
	cJSON_Delete(recording);
}

static void layers_are_the_modules_that_launch_the_same(void **state)
{
	cJSON *recording = read_profile();

	(void)state;
	for (int i = 0; i < 2 * LAYERS; i++) {
		const cJSON *op = operator_at(recording, i);

		expect_text(op, "layer_group", "layers_0");
		assert_int_equal(number_of(op, "layer_instance"), i / 2);
		assert_int_equal(cJSON_IsTrue(member(op, "is_representative")), i < 2);
	}
	assert_int_equal(cJSON_GetArraySize(member(recording, "layers")), LAYERS - 1);
	expect_text(member(recording, "layers"), "net.h.3", "net.h.0");
	cJSON_Delete(recording);
}

/* A template of Inductor has its sizes in its name; a scope of the program has any name. */
static void names_of_scopes_have_no_flops(void **state)
{
	static const char name[] = "gemm_m64n64k64_bf16";
	static struct fixture fixture;
	char of_scopes[] = "/tmp/torsh-profile-scopes-XXXXXX";
	int fd = mkstemp(of_scopes);
	const cJSON *operators;
	cJSON *recording;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	fixture_start(&fixture, 1, 100);
	put_device(&fixture);
	for (uint32_t i = 0; i < 2; i++) {
		fixture_op(&fixture, 100 + i * 100, 0, i + 1, name, NULL, i ? OP_USER : OP_FUNCTION,
			   OP_NO_SEQUENCE);
		put_kernel(&fixture, 110 + i * 100, "gemm", i + 1, 10);
		fixture_op_end(&fixture, 150 + i * 100, 0, i + 1);
	}
	fixture_write(of_scopes, &fixture, 1, 1000);
	fixture_free(&fixture);
	assert_int_equal(RUN(export, of_scopes, "--format", "profile"), 0);
	assert_schema("profile");
	recording = parse_output();
	operators = member(recording, "operators");
	assert_int_equal(cJSON_GetArraySize(operators), 2);
	assert_float_equal(number_of(cJSON_GetArrayItem(operators, 0), "flops"), GEMM_FLOPS, 0);
	assert_true(cJSON_IsNull(member(cJSON_GetArrayItem(operators, 1), "flops")));
	cJSON_Delete(recording);
	unlink(of_scopes);
}

static void windows_hold_what_was_launched_in_them(void **state)
{
	cJSON *recording;

	(void)state;
	assert_int_equal(RUN(export, path, "--format", "profile", "--from", "2us", "--to", "3us"),
			 0);
	assert_schema("profile");
	recording = parse_output();
	assert_int_equal(cJSON_GetArraySize(member(recording, "operators")), 2);
	expect_text(cJSON_GetArrayItem(member(recording, "operators"), 0), "operator_id",
		    "aten::mm_1");
	cJSON_Delete(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_one_kernel_stand_for_those_that_are_launched_alike),
		cmocka_unit_test(unmeasured_kernels_are_marked),
		cmocka_unit_test(rooflines_go_by_the_peaks_of_the_device),
		cmocka_unit_test(device_properties_are_exported),
		cmocka_unit_test(layers_are_the_modules_that_launch_the_same),
		cmocka_unit_test(names_of_scopes_have_no_flops),
		cmocka_unit_test(windows_hold_what_was_launched_in_them),
	};

	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
