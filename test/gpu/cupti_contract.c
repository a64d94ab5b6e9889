/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The rules of CUPTI that the agent relies on and the simulation keeps, each as a test that runs on either: `make test`
 * runs it on the simulation, `make test-gpu` on a device.
 */
#include <dlfcn.h>
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

/* CUPTI 12 came without these, and without buffers of threads; they were added in its course. */
#define HAS_SINGLE_CALLS (CUPTI_API_VERSION >= 26)
#define HAS_NAMED_SUBSCRIBERS (CUPTI_API_VERSION >= 130000)

/* Objects that were destroyed are kept by the simulation: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

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

/* ---- records ----------------------------------------------------------------------------------------------------- */

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

static void copies_and_memsets_say_what_moved(void **state)
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

static void allocations_say_where_and_how_much(void **state)
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
	assert_int_equal(alloc->memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
	assert_int_equal(alloc->memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	assert_int_equal(alloc->address, p);
	assert_int_equal(alloc->bytes, 4096);
	assert_int_equal(release->memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
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
	assert_int_equal(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, NULL),
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
	external = (const CUpti_ActivityExternalCorrelation *)find(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0);
	assert_non_null(external);
	assert_int_equal(external->externalId, 42);
	assert_int_equal(external->correlationId, kernel(1)->correlationId);
	assert_true((const char *)external < (const char *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0));
	assert_int_equal(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &popped), 0);
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

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

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
	assert_int_equal(kernel(0)->correlationId,
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

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

enum { SLOT_VALUE = 77 };

static struct {
	int n_enters, n_exits, n_created, n_cloned;
	uint32_t correlation, of_runtime, of_driver;
	bool is_other_correlation, is_other_slot;
	uint64_t original, of_clone;
	CUgraphNodeType type; /* of the last node that was created */
	uint32_t graph; /* of that */
	char name[64];
} seen;

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
	const CUpti_GraphData *graph = data->resourceDescriptor;

	if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
		seen.type = graph->nodeType;
		cuptiGetGraphId(graph->graph, &seen.graph);
	}
	if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && ++seen.n_created == 1)
		cuptiGetGraphNodeId(graph->node, &seen.original);
	if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED && ++seen.n_cloned == 1)
		cuptiGetGraphNodeId(graph->originalNode, &seen.of_clone);
}

static void CUPTIAPI on_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = data;

	(void)unused;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		on_resource(id, data);
		return;
	}
	if (call->callbackSite == CUPTI_API_ENTER) {
		snprintf(seen.name, sizeof(seen.name), "%s", call->functionName);
		seen.n_enters++;
		seen.correlation = call->correlationId;
		*(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? &seen.of_runtime : &seen.of_driver) = call->correlationId;
		*call->correlationData = SLOT_VALUE;
		return;
	}
	seen.n_exits++;
	seen.is_other_correlation |= call->correlationId != seen.correlation;
	seen.is_other_slot |= *call->correlationData != SLOT_VALUE;
}

static CUpti_SubscriberHandle subscribe(void)
{
	CUpti_SubscriberHandle subscriber;

	memset(&seen, 0, sizeof(seen));
	assert_int_equal(cuptiSubscribe(&subscriber, on_callback, NULL), 0);
	return subscriber;
}

static void callbacks_of_a_call_share_an_id_and_a_slot(void **state)
{
	CUpti_SubscriberHandle subscriber = subscribe();

	(void)state;
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	launch();
	finish();
	assert_int_equal(seen.n_enters, 1);
	assert_int_equal(seen.n_exits, 1);
	assert_false(seen.is_other_correlation);
	assert_false(seen.is_other_slot);
	assert_string_equal(seen.name, "cuLaunchKernel");
	assert_int_equal(cuptiUnsubscribe(subscriber), 0);
	launch();
	assert_int_equal(seen.n_enters, 1);
	assert_int_equal(cuptiUnsubscribe(subscriber), CUPTI_ERROR_INVALID_PARAMETER);
}

static void a_drivers_call_within_the_runtimes_shares_its_id_and_has_no_record(void **state)
{
	void *runtime = dlopen(CUDA_VERSION >= 13000 ? "libcudart.so.13" : "libcudart.so.12", RTLD_NOW);
	int (*set)(void *at, int value, size_t n_bytes, void *stream);
	CUpti_SubscriberHandle subscriber;
	CUdeviceptr p;

	(void)state;
	assert_non_null(runtime);
	*(void **)&set = dlsym(runtime, "cudaMemsetAsync");
	assert_int_equal(cuMemAlloc(&p, 4096), 0);
	subscriber = subscribe();
	cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
	cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
	assert_int_equal(set((void *)p, 0, 4096, stream), 0);
	cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
	cuptiUnsubscribe(subscriber);
	assert_int_not_equal(seen.of_runtime, 0);
	assert_int_equal(seen.of_driver, seen.of_runtime);
	finish();
	for (int i = 0; find(CUPTI_ACTIVITY_KIND_DRIVER, i); i++)
		assert_int_not_equal(((const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, i))->correlationId,
				     seen.of_runtime);
	cuMemFree(p);
}

static void clones_of_nodes_are_told_with_their_originals(void **state)
{
	CUpti_SubscriberHandle subscriber = subscribe();

	(void)state;
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
	make_graph();
	cuptiUnsubscribe(subscriber);
	/* An instantiation tells of its clones as created, too. */
	assert_int_equal(seen.n_created, 4);
	assert_int_equal(seen.n_cloned, 2);
	assert_int_equal(seen.original, seen.of_clone);
}

static void what_gets_memory_in_a_capture_makes_a_node_within_the_call(void **state)
{
	CUpti_SubscriberHandle subscriber = subscribe();
	CUdeviceptr p;
	CUgraph graph;
	uint32_t id;

	(void)state;
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
	seen.type = CU_GRAPH_NODE_TYPE_EMPTY;
	assert_int_equal(cuMemAllocAsync(&p, 4096, stream), 0);
	assert_int_equal(seen.type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	assert_int_equal(cuMemFreeAsync(p, stream), 0);
	assert_int_equal(seen.type, CU_GRAPH_NODE_TYPE_MEM_FREE);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	cuptiUnsubscribe(subscriber);
	assert_int_equal(cuptiGetGraphId(graph, &id), 0);
	assert_int_equal(seen.graph, id);
	assert_int_equal(cuGraphDestroy(graph), 0);
}

/* What the driver said within a call, behind its work. */
static struct {
	int n, result;
	size_t free_bytes, total_bytes;
} asked;

static void CUPTIAPI ask_behind(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)unused;
	(void)domain;
	/* What is asked calls back, too. */
	if (id != CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 ||
	    ((const CUpti_CallbackData *)data)->callbackSite != CUPTI_API_EXIT)
		return;
	asked.n++;
	asked.result = (int)cuThreadExchangeStreamCaptureMode(&mode);
	asked.result |= (int)cuMemGetInfo(&asked.free_bytes, &asked.total_bytes);
	asked.result |= (int)cuThreadExchangeStreamCaptureMode(&mode);
}

static void the_driver_can_be_asked_at_the_end_of_a_call_amid_a_capture(void **state)
{
	CUpti_SubscriberHandle subscriber;
	size_t free_bytes, total_bytes;
	CUdeviceptr p;
	CUgraph graph;

	(void)state;
	memset(&asked, 0, sizeof(asked));
	assert_int_equal(cuptiSubscribe(&subscriber, ask_behind, NULL), 0);
	cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
	assert_int_equal(cuMemAlloc(&p, 64 << 20), 0);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	cuptiUnsubscribe(subscriber);
	assert_int_equal(asked.n, 1);
	assert_int_equal(asked.result, 0);
	assert_int_equal(cuMemGetInfo(&free_bytes, &total_bytes), 0);
	assert_int_equal(asked.free_bytes, free_bytes);
	assert_int_equal(asked.total_bytes, total_bytes);
	assert_int_equal(cuMemFree(p), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
}

#if HAS_NAMED_SUBSCRIBERS
static void a_second_subscriber_is_refused_and_told_who_was_first(void **state)
{
	char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
	CUpti_SubscriberHandle first, second;
	CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
					 .subscriberName = "the first"};

	(void)state;
	assert_int_equal(cuptiSubscribe_v2(&first, on_callback, NULL, &params), 0);
	params.subscriberName = "the second";
	params.oldSubscriberName = name;
	params.oldSubscriberSize = sizeof(name);
	assert_int_equal(cuptiSubscribe_v2(&second, on_callback, NULL, &params),
			 CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	assert_string_equal(name, "the first");
	cuptiUnsubscribe(first);
	assert_int_equal(cuptiSubscribe(&second, on_callback, NULL), 0);
	cuptiUnsubscribe(second);
}
#endif

static void names_of_calls_are_those_of_the_headers(void **state)
{
	const char *name;

	(void)state;
	assert_int_equal(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
					      CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name),
			 0);
	assert_string_equal(name, "cudaLaunchKernel_v7000");
	assert_int_equal(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 100000, &name),
			 CUPTI_ERROR_INVALID_PARAMETER);
}

int main(void)
{
#define RULE(name) cmocka_unit_test_setup(name, client_reset)
	const struct CMUnitTest tests[] = {
		RULE(a_kernel_has_one_record_with_its_launch),
		RULE(the_clock_of_records_is_the_wall_clock),
		RULE(copies_and_memsets_say_what_moved),
		RULE(allocations_say_where_and_how_much),
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
		RULE(callbacks_of_a_call_share_an_id_and_a_slot),
		RULE(a_drivers_call_within_the_runtimes_shares_its_id_and_has_no_record),
		RULE(clones_of_nodes_are_told_with_their_originals),
		RULE(what_gets_memory_in_a_capture_makes_a_node_within_the_call),
		RULE(the_driver_can_be_asked_at_the_end_of_a_call_amid_a_capture),
#if HAS_NAMED_SUBSCRIBERS
		RULE(a_second_subscriber_is_refused_and_told_who_was_first),
#endif
		RULE(names_of_calls_are_those_of_the_headers),
	};
#undef RULE

	return cmocka_run_group_tests(tests, begin, NULL);
}

#endif
