/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the simulated CUPTI does beyond the rules of test/gpu: it detects what breaks them, and its
 * times are exact. Also run by test/e2e/cuda/simcuda.py with the layouts of other versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)

static void nothing_is_simulated_without_the_headers_of_cuda(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_simulated_without_the_headers_of_cuda)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "test/gpu/cupti_client.h"

enum { KERNEL_NS = 5000, POISON = 0xc5 };

static char log_path[] = "/tmp/simcupti-XXXXXX";

static int begin(void **state)
{
	int fd = mkstemp(log_path);

	(void)state;
	setenv("SIMCUDA_CLOCK", "virtual", 1);
	setenv("SIMCUDA_STRICT", "0", 1);
	setenv("SIMCUDA_LOG", log_path, 1);
	setenv("SIMCUDA_FAULTS", "cuptiActivityFlushPeriod=35@1", 1);
	return fd < 0 || close(fd) || client_begin();
}

static int end(void **state)
{
	(void)state;
	return unlink(log_path);
}

static int count_violations(void)
{
	char line[4096];
	FILE *file;
	int n = 0;

	/* The log is written at a synchronisation or when the buffer is full: force it. */
	void sim_log_flush(void);
	sim_log_flush();
	file = fopen(log_path, "r");
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "\"violation\"") != NULL;
	fclose(file);
	return n;
}

static void only_what_is_enabled_is_recorded(void **state)
{
	(void)state;
	launch();
	finish();
	assert_int_equal(client.n_requested, 0);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch();
	/* Launched while it was enabled, ended when it was not any more. */
	cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch();
	finish();
	assert_int_equal(client.n_records, 1);
}

static void a_buffer_holds_nothing_to_read_before_it_is_completed(void **state)
{
	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	launch();
	assert_int_equal(client.n_requested, 1);
	assert_int_equal(client.n_completed, 0);
	assert_int_equal(client.buffers[0][0], POISON);
	finish();
	assert_int_equal(client.n_completed, 1);
	assert_int_equal(client.records[0]->kind, CUPTI_ACTIVITY_KIND_DRIVER);
}

static void writing_to_a_buffer_that_is_not_completed_is_found_out(void **state)
{
	int before = count_violations();

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	launch();
	client.buffers[0][1000] = 0;
	finish();
	assert_int_equal(count_violations(), before + 1);
}

static void a_buffer_that_is_not_aligned_is_found_out(void **state)
{
	int before = count_violations();

	(void)state;
	client.is_askew = true;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	launch();
	assert_int_equal(count_violations(), before + 1);
	finish();
}

static void a_buffer_takes_no_more_records_than_its_client_allows(void **state)
{
	(void)state;
	client.n_most = 3;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	for (int i = 0; i < 10; i++)
		launch();
	finish();
	assert_int_equal(client.n_completed, 4);
	assert_int_equal(client.n_records_of_buffer[0], 3);
	assert_int_equal(client.n_records_of_buffer[3], 1);
}

static void records_without_a_buffer_are_dropped_and_counted_once(void **state)
{
	size_t dropped;

	(void)state;
	cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	client.bytes = 0;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch();
	launch();
	finish();
	assert_int_equal(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), 0);
	assert_int_equal(dropped, 2);
	cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	assert_int_equal(dropped, 0);
}

static void times_are_those_of_the_virtual_clock(void **state)
{
	const CUpti_ActivityGraphTrace2 *trace;
	CUgraphExec exec = make_graph();

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch();
	finish();
	assert_int_equal(kernel(0)->end - kernel(0)->start, KERNEL_NS);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	cuGraphLaunch(exec, stream);
	finish();
	trace = (const CUpti_ActivityGraphTrace2 *)find(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0);
	assert_int_equal(trace->end - trace->start, 2 * KERNEL_NS);
}

static void a_fault_comes_at_its_call_and_not_again(void **state)
{
	(void)state;
	assert_int_equal(cuptiActivityFlushPeriod(0), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	assert_int_equal(cuptiActivityFlushPeriod(0), CUPTI_SUCCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, client_reset)
	const struct CMUnitTest tests[] = {
		TEST(only_what_is_enabled_is_recorded),
		TEST(a_buffer_holds_nothing_to_read_before_it_is_completed),
		TEST(writing_to_a_buffer_that_is_not_completed_is_found_out),
		TEST(a_buffer_that_is_not_aligned_is_found_out),
		TEST(a_buffer_takes_no_more_records_than_its_client_allows),
		TEST(records_without_a_buffer_are_dropped_and_counted_once),
		TEST(times_are_those_of_the_virtual_clock),
		TEST(a_fault_comes_at_its_call_and_not_again),
	};
#undef TEST

	return cmocka_run_group_tests(tests, begin, end);
}

#endif
