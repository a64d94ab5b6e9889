/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh steps: its figures and its histogram, on a hundred steps of 1 to 100 us in mixed order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

#define STEPS 100u
#define FIRST_NS 1000u

static char path[] = "/tmp/torsh-durations-XXXXXX";

/* 37 and 101 have no common divisor: each duration from 1 to 100 us occurs once. */
static uint64_t duration_of(unsigned step)
{
	return (uint64_t)((step + 1) * 37 % (STEPS + 1)) * 1000;
}

static int write_recording(void **state)
{
	static struct fixture fixture;
	uint64_t at = FIRST_NS;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	for (unsigned step = 0; step < STEPS; step++) {
		fixture_push(&fixture, at, 0, "net:Linear", NULL, RANGE_BY_MODULE);
		fixture_pop(&fixture, at + 100, 0, NULL, RANGE_BY_MODULE);
		fixture_op(&fixture, at + 200, 0, step + 1, "Optimizer.step#SGD.step", NULL,
			   OP_USER, OP_NO_SEQUENCE);
		at += duration_of(step);
		fixture_op_end(&fixture, at, 0, step + 1);
	}
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

static void steps_last_from_one_end_to_the_next(void **state)
{
	uint64_t at = FIRST_NS;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(steps, path, "--json"), 0);
	assert_schema("steps");
	json = parse_output();
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "steps")), STEPS);
	for (unsigned i = 0; i < STEPS; i++) {
		const cJSON *step = item_of(json, "steps", (int)i);

		assert_int_equal(number_of(step, "start_ns"), at);
		assert_int_equal(number_of(step, "duration_ns"), duration_of(i));
		at += duration_of(i);
	}
	cJSON_Delete(json);
}

/* Of 1, 2, ... 100 the nearest rank of n percent is n; the median is the upper one. */
static void figures_are_of_the_nearest_rank(void **state)
{
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(steps, path, "--json"), 0);
	json = parse_output();
	assert_int_equal(number_of(json, "median_ns"), 51000);
	assert_int_equal(number_of(json, "certainty"), 1);
	assert_int_equal(number_of(json, "p90_ns"), 90000);
	assert_int_equal(number_of(json, "p99_ns"), 99000);
	cJSON_Delete(json);
	assert_int_equal(RUN(steps, path, "--width=80"), 0);
	assert_non_null(
		strstr(output, "100 steps, median 51 µs, p90 90 µs, p99 99 µs, longest 100 µs"));
}

/* Six rows of 16.334 us from the shortest to p99, and what is above. */
static void rows_of_the_histogram_have_their_steps(void **state)
{
	static const unsigned counts[] = {17, 16, 17, 16, 16, 17, 1};
	const char *line;

	(void)state;
	assert_int_equal(RUN(steps, path, "--width=80"), 0);
	line = strstr(output, "1 µs to ");
	assert_non_null(line);
	line = strstr(line, " to ");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		unsigned count;

		assert_int_equal(sscanf(line, " to %*f %*s %u", &count), 1);
		assert_int_equal(count, counts[i]);
		line = strchr(line, '\n');
		if (i + 1 < sizeof(counts) / sizeof(*counts))
			line = strstr(line, " to ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_last_from_one_end_to_the_next),
		cmocka_unit_test(figures_are_of_the_nearest_rank),
		cmocka_unit_test(rows_of_the_histogram_have_their_steps),
	};

	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
