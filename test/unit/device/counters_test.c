/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is read of counters: a kernel's values by its launch, those of launches that are alike, and
 * numbers that can't be.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/device/kernels/counters.h"
#include "tools/recording/recording.h"

static struct recorded_process process;

static void see_range(struct counters *counters, uint32_t launch, uint32_t correlation,
		      uint32_t first, uint32_t n, double value)
{
	struct event event = {
		.id = EVENT_COUNTER_RANGE,
		.counter_range = {
			.launch = launch, .correlation = correlation, .first = first, .n = n}};
	uint64_t *fields = &event.counter_range.value_0;

	for (uint32_t i = 0; i < COUNTER_VALUES; i++) {
		double number = value + i;

		memcpy(&fields[i], &number, sizeof(number));
	}
	torsh_counters_see(counters, &process, &event);
}

static void see_launch(struct counters *counters, uint32_t number, uint32_t name, uint32_t block)
{
	struct event event = {
		.id = EVENT_COUNTER_LAUNCH,
		.counter_launch = {.number = number, .name = name, .grid_x = 4, .block_x = block}};

	torsh_counters_see(counters, &process, &event);
}

static void a_kernel_has_the_values_of_its_launch(void **state)
{
	const struct counter_kernel *kernel;
	const struct counter_process *seen;
	struct counters counters;

	(void)state;
	torsh_counters_create(&counters);
	assert_null(torsh_counters_process(&counters, &process));
	see_range(&counters, 0, 7, 0, 8, 100);
	see_range(&counters, 0, 7, 8, 3, 200);
	see_range(&counters, 0, 8, 0, 8, 300);
	seen = torsh_counters_process(&counters, &process);
	kernel = torsh_counters_kernel(seen, 7, 0);
	assert_non_null(kernel);
	assert_true(kernel->values[0] == 100 && kernel->values[7] == 107 &&
		    kernel->values[10] == 202);
	assert_true(isnan(kernel->values[11]));
	assert_true(torsh_counters_kernel(seen, 8, 0)->values[0] == 300);
	assert_null(torsh_counters_kernel(seen, 9, 0));
	/* What a graph launched has the graph's correlation, and was not measured. */
	assert_null(torsh_counters_kernel(seen, 7, 1));
	assert_null(torsh_counters_kernel(NULL, 7, 0));
	torsh_counters_destroy(&counters);
}

static void kernels_are_found_by_launches_that_are_alike(void **state)
{
	struct event_kernel kernel = {.name = 5, .grid_x = 4, .block_x = 64};
	const struct counter_process *seen;
	struct counters counters;

	(void)state;
	torsh_counters_create(&counters);
	see_launch(&counters, 0, 5, 32);
	see_launch(&counters, 3, 5, 64);
	seen = torsh_counters_process(&counters, &process);
	/* None of them was measured yet. */
	assert_int_equal(torsh_counters_launch(seen, &kernel), -1);
	see_range(&counters, 3, 7, 0, 8, 1);
	assert_int_equal(torsh_counters_launch(seen, &kernel), 3);
	kernel.dynamic_shared_bytes = 1;
	assert_int_equal(torsh_counters_launch(seen, &kernel), -1);
	assert_int_equal(torsh_counters_launch(NULL, &kernel), -1);
	torsh_counters_destroy(&counters);
}

static void numbers_that_can_not_be_are_passed_over(void **state)
{
	struct event metric = {.id = EVENT_COUNTER_METRIC,
			       .counter_metric = {.number = 5, .device = 1}};
	struct event_counter_sample sample = {.first = 31, .n = UINT32_MAX};
	struct counter_point points[COUNTER_VALUES];
	struct counters counters;

	(void)state;
	torsh_counters_create(&counters);
	torsh_counters_see(&counters, &process, &metric);
	see_launch(&counters, UINT32_MAX, 1, 1);
	see_range(&counters, UINT32_MAX, 7, UINT32_MAX, UINT32_MAX, 1);
	see_range(&counters, 0, 7, 31, 8, 1);
	for (uint32_t device = 0; device < 1000; device++) {
		struct event mode = {.id = EVENT_COUNTER_MODE, .counter_mode = {.device = device}};

		torsh_counters_see(&counters, &process, &mode);
	}
	assert_true(torsh_counters_process(&counters, &process)->n_devices < 100);
	assert_int_equal(torsh_counters_points(&counters, &process, &sample, points), 0);
	assert_null(torsh_counters_metric(torsh_counters_process(&counters, &process), 1, 5)->name);
	torsh_counters_destroy(&counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_has_the_values_of_its_launch),
		cmocka_unit_test(kernels_are_found_by_launches_that_are_alike),
		cmocka_unit_test(numbers_that_can_not_be_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
