/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The rules of CUPTI's callbacks, as those of records in test/gpu/cupti_contract.c. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

/* Those of CUPTI 12 have no names. */
#define HAS_NAMED_SUBSCRIBERS (CUPTI_API_VERSION >= 130000)

static int begin(void **state)
{
	(void)state;
	return client_begin();
}

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

static void CUPTIAPI on_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
				 const void *data)
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
		*(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? &seen.of_runtime : &seen.of_driver) =
			call->correlationId;
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
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
			    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
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
	void *runtime =
		dlopen(CUDA_VERSION >= 13000 ? "libcudart.so.13" : "libcudart.so.12", RTLD_NOW);
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
		assert_int_not_equal(
			((const CUpti_ActivityAPI *)find(CUPTI_ACTIVITY_KIND_DRIVER, i))
				->correlationId,
			seen.of_runtime);
	cuMemFree(p);
}

static void clones_of_nodes_are_reported_with_their_originals(void **state)
{
	CUpti_SubscriberHandle subscriber = subscribe();

	(void)state;
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
			    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
			    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
	make_graph();
	cuptiUnsubscribe(subscriber);
	/* An instantiation reports its clones as created, too. */
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
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
			    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
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

/* The driver's events within a call, after its work. */
static struct {
	int n, result;
	size_t free_bytes, total_bytes;
} queried;

static void CUPTIAPI ask_behind(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
				const void *data)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)unused;
	(void)domain;
	/* Queries cause callbacks, too. */
	if (id != CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 ||
	    ((const CUpti_CallbackData *)data)->callbackSite != CUPTI_API_EXIT)
		return;
	queried.n++;
	queried.result = (int)cuThreadExchangeStreamCaptureMode(&mode);
	queried.result |= (int)cuMemGetInfo(&queried.free_bytes, &queried.total_bytes);
	queried.result |= (int)cuThreadExchangeStreamCaptureMode(&mode);
}

static void the_driver_can_be_queried_at_the_end_of_a_call_amid_a_capture(void **state)
{
	CUpti_SubscriberHandle subscriber;
	size_t free_bytes, total_bytes;
	CUdeviceptr p;
	CUgraph graph;

	(void)state;
	memset(&queried, 0, sizeof(queried));
	assert_int_equal(cuptiSubscribe(&subscriber, ask_behind, NULL), 0);
	cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
	assert_int_equal(cuMemAlloc(&p, 64 << 20), 0);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	cuptiUnsubscribe(subscriber);
	assert_int_equal(queried.n, 1);
	assert_int_equal(queried.result, 0);
	assert_int_equal(cuMemGetInfo(&free_bytes, &total_bytes), 0);
	assert_int_equal(queried.free_bytes, free_bytes);
	assert_int_equal(queried.total_bytes, total_bytes);
	assert_int_equal(cuMemFree(p), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
}

#if HAS_NAMED_SUBSCRIBERS
static void a_second_subscriber_is_refused_with_the_first_ones_name(void **state)
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
					      CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
					      &name),
			 0);
	assert_string_equal(name, "cudaLaunchKernel_v7000");
	assert_int_equal(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 100000, &name),
			 CUPTI_ERROR_INVALID_PARAMETER);
}

int main(void)
{
#define RULE(name) cmocka_unit_test_setup(name, client_reset)
	const struct CMUnitTest tests[] = {
		RULE(callbacks_of_a_call_share_an_id_and_a_slot),
		RULE(a_drivers_call_within_the_runtimes_shares_its_id_and_has_no_record),
		RULE(clones_of_nodes_are_reported_with_their_originals),
		RULE(what_gets_memory_in_a_capture_makes_a_node_within_the_call),
		RULE(the_driver_can_be_queried_at_the_end_of_a_call_amid_a_capture),
#if HAS_NAMED_SUBSCRIBERS
		RULE(a_second_subscriber_is_refused_with_the_first_ones_name),
#endif
		RULE(names_of_calls_are_those_of_the_headers),
	};
#undef RULE

	return cmocka_run_group_tests(tests, begin, NULL);
}

#endif
