/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The contract of collectors/device/devices.h, checked for each row of the table with a runtime on
 * this machine; the simulated one is, and CUDA's on the simulated driver if that was built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

#include "collectors/device/devices.h"

enum { N_MARKS = 300 };

/* Objects that were destroyed are kept by the simulation: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Wait on a thread that may. */
static double elapsed(const struct device_ops *row, void *from, void *to)
{
	double us = 0;
	int result;

	while ((result = row->elapsed(from, to, &us)) == -EAGAIN)
		assert_int_equal(row->synchronize(), 0);
	assert_int_equal(result, 0);
	return us;
}

static void a_name_finds_its_row(void **state)
{
	(void)state;
	for (unsigned i = 0; i < torsh_n_devices; i++)
		assert_ptr_equal(torsh_device_called(torsh_devices[i]->name), torsh_devices[i]);
	assert_null(torsh_device_called("none"));
}

static void a_row_has_what_must_be_there(void **state)
{
	(void)state;
	for (unsigned i = 0; i < torsh_n_devices; i++) {
		const struct device_ops *row = torsh_devices[i];

		assert_true(row->name && row->enabled && row->record && row->elapsed &&
			    row->synchronize && row->on_each_device);
	}
}

static void without_its_runtime_a_row_is_off(void **state)
{
	(void)state;
	assert_false(torsh_device_called("privateuse1")->enabled());
	assert_int_equal(torsh_device_called("privateuse1")->synchronize(), -ENODEV);
}

static void marks_are_in_the_order_of_their_calls(void **state)
{
	const struct device_ops *row = *state;
	void *marks[N_MARKS] = {NULL};
	int64_t before = now_ns(), at_ns;
	int device = -1;

	for (int i = 0; i < N_MARKS; i++) {
		assert_int_equal(row->record(NULL, &device, &marks[i], &at_ns), 0);
		assert_true(marks[i] && device >= 0 && at_ns >= before && at_ns <= now_ns());
		before = at_ns;
	}
	for (int i = 1; i < N_MARKS; i++) {
		assert_true(elapsed(row, marks[i - 1], marks[i]) >= 0);
		assert_true(elapsed(row, marks[i], marks[i - 1]) <= 0);
	}
	assert_true(elapsed(row, marks[0], marks[N_MARKS - 1]) <=
		    (double)(now_ns() - before) / 1000 + 1e6);
}

static void a_mark_is_used_again(void **state)
{
	const struct device_ops *row = *state;
	void *from = NULL, *to = NULL, *again;

	assert_int_equal(row->record(NULL, NULL, &from, NULL), 0);
	again = from;
	assert_int_equal(row->record(NULL, NULL, &to, NULL), 0);
	for (int i = 0; i < N_MARKS; i++)
		assert_int_equal(row->record(NULL, NULL, &again, NULL), 0);
	assert_ptr_equal(again, from);
	assert_true(elapsed(row, to, again) >= 0);
}

static void count(int device, void *sum)
{
	*(int *)sum += device + 1;
}

static void each_device_is_visited_by_its_number(void **state)
{
	const struct device_ops *row = *state;
	int sum = 0;

	assert_int_equal(row->on_each_device(count, &sum), 0);
	assert_true(sum >= 1);
}

/* A context of the simulated driver, current on this thread. */
static int begin_driver(void **state)
{
	const char *build = getenv("BUILD");
	int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
	void *library, *context;
	char path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/simcuda/lib/libcuda.so.1", build ? build : "build");
	assert_false(torsh_device_called("cuda")->enabled());
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return 0;
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	return init(0) || retain(&context, 0) || set(context) ||
	       !torsh_device_called("cuda")->enabled();
}

/* CUDA's on the simulated driver, and each with a preloaded runtime. */
static void rows_whose_runtime_is_loaded_keep_the_contract(void **state)
{
	unsigned n_enabled = 0;

	(void)state;
	for (unsigned i = 0; i < torsh_n_devices; i++) {
		void *row = (void *)torsh_devices[i];

		if (!torsh_devices[i]->enabled())
			continue;
		print_message("%s\n", torsh_devices[i]->name);
		marks_are_in_the_order_of_their_calls(&row);
		a_mark_is_used_again(&row);
		each_device_is_visited_by_its_number(&row);
		n_enabled++;
	}
	if (!n_enabled)
		skip(); /* the simulated driver was not built */
}

#define SIMULATED(test)                                                  \
	{                                                                \
#test, test, NULL, NULL, (void *)&torsh_device_simulated \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_finds_its_row),
		cmocka_unit_test(a_row_has_what_must_be_there),
		cmocka_unit_test(without_its_runtime_a_row_is_off),
		SIMULATED(marks_are_in_the_order_of_their_calls),
		SIMULATED(a_mark_is_used_again),
		SIMULATED(each_device_is_visited_by_its_number),
		cmocka_unit_test(rows_whose_runtime_is_loaded_keep_the_contract),
	};

	return cmocka_run_group_tests(tests, begin_driver, NULL);
}
