/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The rules of CUPTI, as the simulated one keeps them, seen by a client that knows only the public headers. Also run by
 * test/e2e/simcuda.py with the layouts of other versions.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_simulated_without_the_headers_of_cuda)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include <cuda.h>
#include <cupti.h>

enum { KERNEL_NS = 5000, POISON = 0xc5, MAX_BUFFERS = 64, MAX_RECORDS = 512 };

/* Objects that were destroyed are kept, so that a stale handle is told from a live one: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* What the client got, in the order of completion. */
static struct {
	size_t bytes, n_most; /* of the next buffers; 0 bytes: none is given */
	bool is_askew;
	uint8_t *buffers[MAX_BUFFERS];
	int n_requested, n_completed;
	CUpti_Activity *records[MAX_RECORDS];
	int n_records;
	int n_records_of_buffer[MAX_BUFFERS];
} client;

static CUfunction function;
static CUstream stream;
static char log_path[] = "/tmp/simcupti-XXXXXX";

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = client.bytes ? (uint8_t *)aligned_alloc(8, client.bytes + 8) + client.is_askew : NULL;
	*size = client.bytes;
	*max_records = client.n_most;
	if (client.bytes)
		client.buffers[client.n_requested++ % MAX_BUFFERS] = *buffer;
}

static void take_buffer(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	int before = client.n_records;

	(void)context, (void)stream_id, (void)size;
	while (client.n_records < MAX_RECORDS && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		client.records[client.n_records++] = record;
	client.n_records_of_buffer[client.n_completed++ % MAX_BUFFERS] = client.n_records - before;
}

static int begin(void **state)
{
	CUmodule module;
	CUcontext context;
	CUdevice device;
	int fd = mkstemp(log_path);

	(void)state;
	setenv("SIMCUDA_CLOCK", "virtual", 1);
	setenv("SIMCUDA_STRICT", "0", 1);
	setenv("SIMCUDA_LOG", log_path, 1);
	setenv("SIMCUDA_FAULTS", "cuptiActivityFlushPeriod=35@1", 1);
	if (fd < 0 || close(fd))
		return 1;
	return cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	       cuCtxSetCurrent(context) || cuModuleLoadData(&module, "code") ||
	       cuModuleGetFunction(&function, module, "_Z4workPf") || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
	       cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
}

static int end(void **state)
{
	(void)state;
	return unlink(log_path);
}

/* Before each test: nothing is enabled, and nothing is left of the one before. */
static int reset(void **state)
{
	(void)state;
	cuCtxSynchronize();
	cuptiActivityFlushAll(0);
	for (int kind = 1; kind < 60; kind++)
		cuptiActivityDisable((CUpti_ActivityKind)kind);
	memset(&client, 0, sizeof(client));
	client.bytes = 1 << 16;
	return 0;
}

static void launch(void)
{
	assert_int_equal(cuLaunchKernel(function, 4, 2, 1, 64, 1, 1, 256, stream, NULL, NULL), 0);
}

static void finish(void)
{
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuptiActivityFlushAll(0), 0);
}

static const CUpti_Activity *find(CUpti_ActivityKind kind, int n)
{
	for (int i = 0; i < client.n_records; i++)
		if (client.records[i]->kind == kind && n-- == 0)
			return client.records[i];
	return NULL;
}

static int count(CUpti_ActivityKind kind)
{
	int n = 0;

	while (find(kind, n))
		n++;
	return n;
}

static const CUpti_ActivityKernel9 *kernel(int n)
{
	return (const CUpti_ActivityKernel9 *)find(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, n);
}

static int count_violations(void)
{
	char line[4096];
	FILE *file;
	int n = 0;

	/* The log is written when something is synchronised or the buffer is full: ask for it. */
	void sim_log_flush(void);
	sim_log_flush();
	file = fopen(log_path, "r");
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "\"violation\"") != NULL;
	fclose(file);
	return n;
}

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
	assert_int_equal(kernel(0)->end - kernel(0)->start, KERNEL_NS);
	assert_int_equal(kernel(0)->gridX, 4);
	assert_int_equal(kernel(0)->gridY, 2);
	assert_int_equal(kernel(0)->blockX, 64);
	assert_int_equal(kernel(0)->dynamicSharedMemory, 256);
	call = (const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0);
	assert_int_equal(call->cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	assert_int_equal(call->correlationId, kernel(0)->correlationId);
	assert_true(kernel(0)->start >= call->start);
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
	assert_int_equal(copy->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
	assert_int_equal(copy->bytes, sizeof(host));
	assert_int_equal(copy->srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
	assert_int_equal(copy->flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	set = (const CUpti_ActivityMemset4 *)find(CUPTI_ACTIVITY_KIND_MEMSET, 0);
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

static void a_buffer_takes_no_more_records_than_its_client_says(void **state)
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

static void what_runs_is_flushed_only_by_force_and_then_lost(void **state)
{
	(void)state;
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch();
	/* Let it start. */
	while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && client.n_records == 0) {
		cuptiActivityFlushAll(0);
		assert_int_equal(client.n_records, 0);
		cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	}
	assert_int_equal(client.n_records, 1);
	assert_int_not_equal(kernel(0)->start, 0);
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
	assert_int_equal(external->externalId, 42);
	assert_int_equal(external->correlationId, kernel(1)->correlationId);
	assert_true((const char *)external < (const char *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0));
	assert_int_equal(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &popped), 0);
	assert_int_equal(popped, 42);
	cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &popped);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------------- */

static CUgraphExec make_graph(void)
{
	CUgraph graph;
	CUgraphExec exec;

	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
	launch();
	launch();
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	return exec;
}

static void nodes_of_a_graph_have_the_launch_and_ids(void **state)
{
	CUgraphExec exec = make_graph();
	uint32_t id;

	(void)state;
	cuptiGetGraphExecId(exec, &id);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, 1);
	cuGraphLaunch(exec, stream);
	finish();
	cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, 0);
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 2);
	assert_int_equal(kernel(0)->graphId, id);
	assert_int_not_equal(kernel(0)->graphNodeId, kernel(1)->graphNodeId);
	assert_int_equal(kernel(0)->correlationId, kernel(1)->correlationId);
	assert_int_equal(kernel(0)->correlationId,
			 ((const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, 0))->correlationId);
}

static void a_graph_that_is_traced_as_a_whole_hides_its_nodes(void **state)
{
	const CUpti_ActivityGraphTrace2 *trace;

	(void)state;
	CUgraphExec exec = make_graph();
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	cuGraphLaunch(exec, stream);
	finish();
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
	assert_int_equal(count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), 1);
	trace = (const CUpti_ActivityGraphTrace2 *)find(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0);
	assert_int_equal(trace->end - trace->start, 2 * KERNEL_NS);
}

/* ---- callbacks ----------------------------------------------------------------------------------------------------------- */

static struct {
	int n_enters, n_exits, n_created, n_cloned;
	uint32_t correlation;
	uint64_t original, of_clone;
	char name[64];
} seen;

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
	const CUpti_GraphData *graph = data->resourceDescriptor;

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
	snprintf(seen.name, sizeof(seen.name), "%s", call->functionName);
	if (call->callbackSite == CUPTI_API_ENTER) {
		seen.n_enters++;
		seen.correlation = call->correlationId;
		*call->correlationData = 77;
		return;
	}
	seen.n_exits++;
	assert_int_equal(call->correlationId, seen.correlation);
	assert_int_equal(*call->correlationData, 77);
	assert_int_equal(*(CUresult *)call->functionReturnValue, CUDA_SUCCESS);
}

static void callbacks_of_a_call_share_an_id_and_a_slot(void **state)
{
	CUpti_SubscriberHandle subscriber;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(cuptiSubscribe(&subscriber, on_callback, NULL), 0);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	launch();
	finish();
	assert_int_equal(seen.n_enters, 1);
	assert_int_equal(seen.n_exits, 1);
	assert_string_equal(seen.name, "cuLaunchKernel");
	assert_int_equal(cuptiUnsubscribe(subscriber), 0);
	launch();
	assert_int_equal(seen.n_enters, 1);
	assert_int_equal(cuptiUnsubscribe(subscriber), CUPTI_ERROR_INVALID_PARAMETER);
}

static void clones_of_nodes_are_told_with_their_originals(void **state)
{
	CUpti_SubscriberHandle subscriber;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	cuptiSubscribe(&subscriber, on_callback, NULL);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
	make_graph();
	cuptiUnsubscribe(subscriber);
	/* An instantiation tells of its clones as created, too. */
	assert_int_equal(seen.n_created, 4);
	assert_int_equal(seen.n_cloned, 2);
	assert_int_equal(seen.original, seen.of_clone);
}

static void a_second_subscriber_is_refused_and_told_who_was_first(void **state)
{
	char name[64] = "";
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

static void a_fault_comes_at_its_call_and_not_again(void **state)
{
	(void)state;
	assert_int_equal(cuptiActivityFlushPeriod(0), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	assert_int_equal(cuptiActivityFlushPeriod(0), CUPTI_SUCCESS);
}

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
#define TEST(name) cmocka_unit_test_setup(name, reset)
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_has_one_record_with_its_launch),
		TEST(copies_and_memsets_say_what_moved),
		TEST(allocations_say_where_and_how_much),
		TEST(only_what_is_enabled_is_recorded),
		TEST(single_calls_can_be_recorded),
		TEST(a_buffer_holds_nothing_to_read_before_it_is_completed),
		TEST(writing_to_a_buffer_that_is_not_completed_is_found_out),
		TEST(a_buffer_that_is_not_aligned_is_found_out),
		TEST(full_buffers_are_completed_and_nothing_is_lost),
		TEST(a_buffer_takes_no_more_records_than_its_client_says),
		TEST(records_without_a_buffer_are_dropped_and_counted_once),
		TEST(what_runs_is_flushed_only_by_force_and_then_lost),
		TEST(external_ids_come_before_the_call_and_need_its_kind),
		TEST(nodes_of_a_graph_have_the_launch_and_ids),
		TEST(a_graph_that_is_traced_as_a_whole_hides_its_nodes),
		TEST(callbacks_of_a_call_share_an_id_and_a_slot),
		TEST(clones_of_nodes_are_told_with_their_originals),
		TEST(a_second_subscriber_is_refused_and_told_who_was_first),
		TEST(each_thread_has_buffers_of_its_own),
		TEST(a_fault_comes_at_its_call_and_not_again),
		TEST(names_of_calls_are_those_of_the_headers),
	};
#undef TEST

	return cmocka_run_group_tests(tests, begin, end);
}

#endif
