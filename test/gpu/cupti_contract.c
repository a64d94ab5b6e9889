/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The rules of CUPTI's records that the agent relies on and the simulation keeps, each as a test
 * that runs on either: `make test` runs it on the simulation, `make test-gpu` on a device. Those of
 * callbacks: test/gpu/cupti_callbacks.c.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)

static void there_are_no_headers_of_cuda(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(there_are_no_headers_of_cuda)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "test/gpu/cupti_client.h"

/* Between clocks that are brought together by interpolation: 8 to 9 us were measured on devices. */
enum { CLOCK_ERROR_NS = 100000 };

/*
 * CUPTI 12 came without calls one by one, and without buffers of threads; they were added in its
 * course.
 */
#define HAS_SINGLE_CALLS (CUPTI_API_VERSION >= 26)

static int begin(void **state)
{
	(void)state;
	setenv("SIMCUDA_KERNELS", CLIENT_SLOW_KERNEL "=20000000", 1);
	setenv("SIMCUDA_STRICT", "0", 1);
	return client_begin();
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- records --------------------------------------------------------------------------------- */

static void a_kernel_has_one_record_with_its_launch(void **state)
{
	const CUpti_ActivityAPI *call;

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	launch();
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
	assert_string_equal(kernel(0)->name, "_Z4workPf");
	assert_true(kernel(0)->end > kernel(0)->start);
	assert_int_equal(kernel(0)->gridX, 4);
	assert_int_equal(kernel(0)->gridY, 2);
	assert_int_equal(kernel(0)->blockX, 64);
	assert_int_equal(kernel(0)->dynamicSharedMemory, 256);
	call = (const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0);
	assert_non_null(call);
	assert_int_equal(call->cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	assert_int_equal(call->correlationId, kernel(0)->correlationId);
	assert_true(kernel(0)->start + CLOCK_ERROR_NS >= call->start);
}

static void the_clock_of_records_is_the_wall_clock(void **state)
{
	uint64_t before = wall_ns(), stamp = 0;

	(void)state;
	assert_int_equal(cuptiGetTimestamp(&stamp), 0);
	assert_in_range(stamp, before, wall_ns());
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch_function(slow_work);
	finish();
	assert_in_range(kernel(0)->start, before - CLOCK_ERROR_NS, wall_ns());
	assert_in_range(kernel(0)->end, kernel(0)->start + 19000000, wall_ns() + CLOCK_ERROR_NS);
}

static void copies_and_memsets_report_what_moved(void **state)
{
	const CUpti_ActivityMemcpy5 *copy;
	const CUpti_ActivityMemset4 *set;
	CUdeviceptr p;
	char host[100];

	(void)state;
	cuMemAlloc(&p, 4096);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
	cuMemcpyHtoDAsync(p, host, sizeof(host), stream);
	cuMemsetD32Async(p, 7, 10, stream);
	finish();
	copy = (const CUpti_ActivityMemcpy5 *)find(CUPTI_ACTIVITY_KIND_MEMCPY, 0);
	assert_non_null(copy);
	assert_int_equal(copy->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
	assert_int_equal(copy->bytes, sizeof(host));
	assert_int_equal(copy->srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
	assert_int_equal(copy->flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	set = (const CUpti_ActivityMemset4 *)find(CUPTI_ACTIVITY_KIND_MEMSET, 0);
	assert_non_null(set);
	assert_int_equal(set->bytes, 40);
	assert_int_equal(set->value, 7);
	cuMemFree(p);
}

static void allocations_report_where_and_how_much(void **state)
{
	const CUpti_ActivityMemory3 *alloc, *release;
	CUdeviceptr p;

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
	cuMemAlloc(&p, 4096);
	cuMemFree(p);
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_MEMORY2), 2);
	alloc = (const CUpti_ActivityMemory3 *)find(CUPTI_ACTIVITY_KIND_MEMORY2, 0);
	release = (const CUpti_ActivityMemory3 *)find(CUPTI_ACTIVITY_KIND_MEMORY2, 1);
	assert_int_equal(alloc->memoryOperationType,
			 CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
	assert_int_equal(alloc->memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	assert_int_equal(alloc->address, p);
	assert_int_equal(alloc->bytes, 4096);
	assert_int_equal(release->memoryOperationType,
			 CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
	assert_int_equal(release->address, p);
}

#if HAS_SINGLE_CALLS
static void single_calls_can_be_recorded(void **state)
{
	(void)state;
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, 1);
	launch();
	finish();
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, 0);
	assert_int_equal(client.n_records, 1);
	assert_int_equal(((const CUpti_ActivityAPI *)client.records[0])->cbid,
			 CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
}
#endif

static void full_buffers_are_completed_and_nothing_is_lost(void **state)
{
	enum { LAUNCHES = 50 };

	(void)state;
	client.bytes = 1000;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	for (int i = 0; i < LAUNCHES; i++)
		launch();
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), LAUNCHES);
	assert_true(client.n_completed > 10);
	assert_int_equal(client.n_completed, client.n_requested);
}

static void what_runs_is_flushed_only_by_force_and_then_lost(void **state)
{
	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch_function(slow_work);
	/* Let it start. */
	while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && client.n_records == 0) {
		cuptiActivityFlushAll(0);
		assert_int_equal(client.n_records, 0);
		cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	}
	assert_int_equal(client.n_records, 1);
	assert_int_equal(kernel(0)->end, 0);
	finish();
	assert_int_equal(client.n_records, 1);
}

static void external_ids_come_before_the_call_and_need_its_kind(void **state)
{
	const CUpti_ActivityExternalCorrelation *external;
	uint64_t popped;

	(void)state;
	assert_int_equal(cuptiActivityPopExternalCorrelationId(
				 CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, NULL),
			 CUPTI_ERROR_QUEUE_EMPTY);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 41);
	cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 42);
	launch();
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), 0);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	launch();
	cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
	finish();
	external = (const CUpti_ActivityExternalCorrelation *)find(
		CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0);
	assert_non_null(external);
	assert_int_equal(external->externalId, 42);
	assert_int_equal(external->correlationId, kernel(1)->correlationId);
	assert_true((const char *)external < (const char *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0));
	assert_int_equal(cuptiActivityPopExternalCorrelationId(
				 CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &popped),
			 0);
	assert_int_equal(popped, 42);
	cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &popped);
}

#if HAS_SINGLE_CALLS
static void *launch_in_thread(void *context)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < 10; i++)
		launch();
	return NULL;
}

static void each_thread_has_buffers_of_its_own(void **state)
{
	pthread_t threads[2];
	CUcontext context;

	(void)state;
	cuCtxGetCurrent(&context);
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, launch_in_thread, context);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0);
	finish();
	assert_int_equal(client.n_records, 20);
	for (int i = 0; i < client.n_records; i += client.n_records_of_buffer[0])
		for (int k = i; k < i + client.n_records_of_buffer[0]; k++)
			assert_int_equal(((const CUpti_ActivityAPI *)client.records[i])->threadId,
					 ((const CUpti_ActivityAPI *)client.records[k])->threadId);
}
#endif

/* ---- graphs ---------------------------------------------------------------------------------- */

static void nodes_of_a_graph_have_the_launch_and_ids(void **state)
{
	CUgraphExec exec = make_graph();

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	cuGraphLaunch(exec, stream);
	cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 2);
#if HAS_SINGLE_CALLS
	uint32_t id;

	assert_int_equal(cuptiGetGraphExecId(exec, &id), 0);
	assert_int_equal(kernel(0)->graphId, id);
#endif
	assert_int_not_equal(kernel(0)->graphNodeId, kernel(1)->graphNodeId);
	assert_int_equal(kernel(0)->correlationId, kernel(1)->correlationId);
	assert_int_equal(
		kernel(0)->correlationId,
		((const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0))->correlationId);
}

static void a_graph_that_is_traced_as_a_whole_hides_its_nodes(void **state)
{
	CUgraphExec exec = make_graph();

	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	cuGraphLaunch(exec, stream);
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), 1);
}

int main(void)
{
#define RULE(name) cmocka_unit_test_setup(name, client_reset)
	const struct CMUnitTest tests[] = {
		RULE(a_kernel_has_one_record_with_its_launch),
		RULE(the_clock_of_records_is_the_wall_clock),
		RULE(copies_and_memsets_report_what_moved),
		RULE(allocations_report_where_and_how_much),
#if HAS_SINGLE_CALLS
		RULE(single_calls_can_be_recorded),
#endif
		RULE(full_buffers_are_completed_and_nothing_is_lost),
		RULE(what_runs_is_flushed_only_by_force_and_then_lost),
		RULE(external_ids_come_before_the_call_and_need_its_kind),
#if HAS_SINGLE_CALLS
		RULE(each_thread_has_buffers_of_its_own),
#endif
		RULE(nodes_of_a_graph_have_the_launch_and_ids),
		RULE(a_graph_that_is_traced_as_a_whole_hides_its_nodes),
	};
#undef RULE

	return cmocka_run_group_tests(tests, begin, NULL);
}

#endif
