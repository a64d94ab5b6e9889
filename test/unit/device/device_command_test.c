/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device time in the commands that read the timeline, on a recording with known contents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

static char path[] = "/tmp/torsh-device-commands-XXXXXX";

static void put_work(struct fixture *fixture, uint64_t at, uint32_t correlation, uint64_t begin,
		     uint64_t duration_ns, uint32_t device)
{
	static const char *const names[] = {"first", "second", "third", "fourth"};
	struct event event = {.id = EVENT_KERNEL};

	event.kernel.name = fixture_label(fixture, names[correlation % 4]);
	event.kernel.correlation = correlation;
	event.kernel.begin = begin;
	event.kernel.duration_ns = duration_ns;
	event.kernel.device = device;
	event.kernel.stream = 7;
	fixture_event(fixture, at, 1, &event);
}

static void put_launch(struct fixture *fixture, uint64_t at, uint32_t correlation)
{
	struct event event = {.id = EVENT_LAUNCH};

	event.launch.api = fixture_label(fixture, "cudaLaunchKernel");
	event.launch.correlation = correlation;
	event.launch.begin = at - 5;
	event.launch.duration_ns = 4;
	fixture_event(fixture, at, 0, &event);
}

/* From at on; its last kernel, on another device, goes on when the step has ended. */
static void put_step(struct fixture *fixture, uint64_t at, uint32_t record, uint32_t correlation)
{
	fixture_push(fixture, at, 0, "gen:Gen", NULL, RANGE_BY_MODULE);
	fixture_push(fixture, at + 5, 0, "gen.0:Linear", NULL, RANGE_BY_MODULE);
	fixture_op(fixture, at + 10, 0, record, "aten::addmm", NULL, 0, record);
	put_launch(fixture, at + 30, correlation);
	fixture_op_end(fixture, at + 100, 0, record);
	fixture_pop(fixture, at + 105, 0, NULL, RANGE_BY_MODULE);
	fixture_pop(fixture, at + 110, 0, NULL, RANGE_BY_MODULE);
	/* Called by itself, and it launches by itself. */
	fixture_push(fixture, at + 120, 0, "gen.1:Disc", NULL, RANGE_BY_MODULE);
	put_launch(fixture, at + 130, correlation + 1);
	fixture_pop(fixture, at + 140, 0, NULL, RANGE_BY_MODULE);
	fixture_op(fixture, at + 200, 0, record + 1, "AddmmBackward0", NULL, OP_BACKWARD, record);
	put_launch(fixture, at + 250, correlation + 2);
	fixture_op_end(fixture, at + 400, 0, record + 1);
	fixture_op(fixture, at + 500, 0, record + 2, "Optimizer.step#SGD.step", NULL, OP_USER,
		   OP_NO_SEQUENCE);
	put_launch(fixture, at + 550, correlation + 3);
	fixture_op_end(fixture, at + 700, 0, record + 2);
	put_work(fixture, at + 900, correlation, at + 40, 100, 0);
	put_work(fixture, at + 900, correlation + 1, at + 140, 50, 0);
	put_work(fixture, at + 900, correlation + 2, at + 260, 100, 0);
	put_work(fixture, at + 900, correlation + 3, at + 600, 300, 1);
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
	fixture_thread(&fixture, 101, "CUPTI's");
	put_step(&fixture, 1000, 1, 40);
	put_step(&fixture, 2000, 4, 44);
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

static const cJSON *named(const cJSON *json, const char *list, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, list))
	{
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name"));

		if (text && strcmp(text, name) == 0)
			return item;
	}
	fail_msg("there is no %s in %s", name, list);
	return NULL;
}

static void steps_have_what_they_launched(void **state)
{
	static const struct {
		uint64_t device_ns[2], busy_ns[2];
	} expected[] = {{{250, 300}, {250, 100}}, {{250, 300}, {250, 300}}};
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(steps, path, "--json"), 0);
	assert_schema("steps");
	json = parse_output();
	for (int i = 0; i < 2; i++) {
		const cJSON *step = item_of(json, "steps", i),
			    *phases = cJSON_GetObjectItem(step, "device_phases");

		assert_int_equal(number_of(step, "device_ns"), 550);
		assert_int_equal(number_of(phases, "forward"), 150);
		assert_int_equal(number_of(phases, "backward"), 100);
		assert_int_equal(number_of(phases, "optimizer"), 300);
		for (int k = 0; k < 2; k++) {
			const cJSON *device = item_of(step, "devices", k);

			assert_int_equal(number_of(device, "device"), k);
			assert_int_equal(number_of(device, "device_ns"), expected[i].device_ns[k]);
			assert_int_equal(number_of(device, "busy_ns"), expected[i].busy_ns[k]);
		}
	}
	cJSON_Delete(json);
	assert_int_equal(RUN(steps, path), 0);
	assert_non_null(strstr(output, " 35.7%"));
}

static void modules_have_that_of_the_modules_called_inside(void **state)
{
	static const struct {
		const char *name;
		uint64_t device_ns, self_device_ns, backward_ns, self_backward_ns;
	} expected[] = {{"gen:Gen", 400, 0, 400, 0},
			{"gen.0:Linear", 400, 400, 400, 400},
			{"gen.1:Disc", 100, 100, 0, 0}};
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(modules, path, "--json"), 0);
	assert_schema("modules");
	json = parse_output();
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const cJSON *module = named(json, "modules", expected[i].name);

		assert_int_equal(number_of(module, "device_ns"), expected[i].device_ns);
		assert_int_equal(number_of(module, "self_device_ns"), expected[i].self_device_ns);
		assert_int_equal(number_of(module, "backward_ns"), expected[i].backward_ns);
		assert_int_equal(number_of(module, "self_backward_ns"),
				 expected[i].self_backward_ns);
	}
	cJSON_Delete(json);
	assert_int_equal(RUN(modules, path), 0);
	assert_non_null(strstr(output, "self dev"));
}

static void operators_have_devices_time_by_every_group(void **state)
{
	static const struct {
		const char *group, *name;
		uint64_t self_device_ns;
	} expected[] = {{"name", "Optimizer.step#SGD.step", 600},
			{"shape", "aten::addmm", 200},
			{"overload", "AddmmBackward0", 200},
			{"stack", "AddmmBackward0", 200},
			{"module", "gen.0:Linear", 400},
			{"phase", "optimizer", 600},
			{"step", "step", 500}};
	cJSON *json;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		assert_int_equal(
			RUN(ops, path, "--json", "--sort=device", "--group", expected[i].group), 0);
		assert_schema("ops");
		json = parse_output();
		assert_int_equal(number_of(named(json, "ops", expected[i].name), "self_device_ns"),
				 expected[i].self_device_ns);
		assert_true(number_of(item_of(json, "ops", 0), "self_device_ns") >=
			    number_of(item_of(json, "ops", 1), "self_device_ns"));
		cJSON_Delete(json);
	}
}

static void kernels_are_chosen_by_the_step_that_launched_them(void **state)
{
	const cJSON *kernel;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(kernels, path, "--json", "--steps=0"), 0);
	assert_schema("kernels");
	json = parse_output();
	assert_int_equal(number_of(json, "total_ns"), 550);
	assert_int_equal(number_of(item_of(json, "selection", 0), "shown"), 1);
	kernel = named(json, "kernels", "fourth");
	assert_int_equal(number_of(kernel, "calls"), 1);
	cJSON_Delete(json);
	assert_int_equal(RUN(kernels, path, "--json", "--skip-warmup=1"), 0);
	json = parse_output();
	assert_int_equal(number_of(json, "total_ns"), 550);
	cJSON_Delete(json);
	assert_int_equal(RUN(kernels, path, "--json", "--sort=name", "--limit=1"), 0);
	json = parse_output();
	assert_string_equal(text_of(item_of(json, "kernels", 0), "name"), "first");
	assert_int_equal(number_of(json, "omitted"), 3);
	cJSON_Delete(json);
	assert_int_equal(RUN(kernels, path, "--json", "--sort=max"), 0);
	json = parse_output();
	assert_string_equal(text_of(item_of(json, "kernels", 0), "name"), "fourth");
	cJSON_Delete(json);
	assert_int_equal(RUN_WITH_ERRORS(kernels, path, "--sort=self"), 2);
	assert_non_null(strstr(output, "total, calls, average, max, bytes or name"));
	assert_int_equal(RUN_WITH_ERRORS(kernels, path, "--steps=7"), 2);
	assert_non_null(strstr(output, "no such steps"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_have_what_they_launched),
		cmocka_unit_test(modules_have_that_of_the_modules_called_inside),
		cmocka_unit_test(operators_have_devices_time_by_every_group),
		cmocka_unit_test(kernels_are_chosen_by_the_step_that_launched_them),
	};

	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
