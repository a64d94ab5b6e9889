/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Kernels with names that nobody would choose, and kernels that take no time: reports stay what
 * they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

#define LONG_NAME 5000u

static char path[] = "/tmp/torsh-device-names-XXXXXX";
static char long_name[LONG_NAME + 1];

static void put_kernel(struct fixture *fixture, uint64_t at, const char *name, uint64_t duration_ns)
{
	const struct event event = {.id = EVENT_KERNEL,
				    .kernel = {.name = fixture_label(fixture, name),
					       .begin = at,
					       .duration_ns = duration_ns,
					       .device = 1,
					       .stream = 7}};

	fixture_event(fixture, at + duration_ns, 0, &event);
}

static int write_recording(void **state)
{
	static struct fixture fixture;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	memset(long_name, 'x', LONG_NAME);
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	put_kernel(&fixture, 1000, "\xff\xfe", 0);
	put_kernel(&fixture, 2000, "a\"\\\n\x1b[31m", 0);
	put_kernel(&fixture, 3000, "\xc3", 0);
	put_kernel(&fixture, 4000, long_name, 0);
	put_kernel(&fixture, 5000, "", 0);
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

/* No control characters that a terminal would obey, and no byte that is not UTF-8. */
static void expect_printable(const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if ((*at < ' ' && *at != '\n') || *at == 0x7f || *at == 0xff || *at == 0xfe)
			fail_msg("byte %#x in what is printed: %.40s", *at, (const char *)at);
	}
}

static void names_of_any_bytes_are_valid_json(void **state)
{
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(kernels, path, "--json", "--limit=0"), 0);
	assert_schema("kernels");
	expect_printable(output);
	json = parse_output();
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "kernels")), 5);
	cJSON_Delete(json);
	assert_int_equal(RUN(report, path, "--json"), 0);
	assert_schema("report");
	expect_printable(output);
}

static void names_of_any_bytes_leave_the_terminal_alone(void **state)
{
	(void)state;
	assert_int_equal(RUN(kernels, path, "--limit=0"), 0);
	expect_printable(output);
	assert_int_equal(RUN(report, path), 0);
	expect_printable(output);
}

static void kernels_without_time_have_shares_of_nothing(void **state)
{
	(void)state;
	assert_int_equal(RUN(kernels, path), 0);
	assert_null(strstr(output, "nan"));
	assert_null(strstr(output, "inf"));
	assert_int_equal(RUN(steps, path), 0);
	assert_null(strstr(output, "nan"));
	assert_int_equal(RUN(check, path, "--max-device-time=0", "--device=cuda:1", "--json"), 0);
	assert_schema("check");
	assert_int_equal(RUN(check, path, "--max-device-time=0", "--device=cuda:0"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_any_bytes_are_valid_json),
		cmocka_unit_test(names_of_any_bytes_leave_the_terminal_alone),
		cmocka_unit_test(kernels_without_time_have_shares_of_nothing),
	};

	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
