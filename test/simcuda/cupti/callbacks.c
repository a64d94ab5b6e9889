/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The one subscriber, and the callbacks that it enabled. */
#include "test/simcuda/cupti/cupti.h"
#include "test/simcuda/cupti/profiler.h"

#include <stdio.h>
#include <string.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/graph.h"
#include "test/simcuda/engine/log/log.h"

enum { MAX_NAME = 64 };

static struct subscriber {
	_Atomic(CUpti_CallbackFunc) call;
	void *data;
	char name[MAX_NAME];
	_Atomic uint8_t is_enabled[CUPTI_N_DOMAINS][CUPTI_N_CALLBACKS];
} the_subscriber;

static atomic_flag is_taken = ATOMIC_FLAG_INIT;

static struct subscriber *subscriber_of(CUpti_SubscriberHandle handle)
{
	struct subscriber *subscriber = (struct subscriber *)handle;

	return subscriber == &the_subscriber && atomic_load(&subscriber->call) ? subscriber : NULL;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
			     void *data, const char *name)
{
	CUptiResult result = cupti_check();

	if (result)
		return result;
	if (!handle || !callback)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (atomic_flag_test_and_set(&is_taken))
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	snprintf(the_subscriber.name, sizeof(the_subscriber.name), "%s", name);
	the_subscriber.data = data;
	atomic_store(&the_subscriber.call, callback);
	cupti_attach();
	*handle = (CUpti_SubscriberHandle)&the_subscriber;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
			      void *userdata)
{
	return subscribe(subscriber, callback, userdata, "");
}

#ifdef HAS_cuptiSubscribe_v2
CUptiResult do_cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
				 void *userdata, CUpti_SubscriberParams *pParams)
{
	CUptiResult result;

	if (!pParams || !pParams->structSize)
		return CUPTI_ERROR_INVALID_PARAMETER;
	result = subscribe(subscriber, callback, userdata,
			   pParams->subscriberName ? pParams->subscriberName : "");
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && pParams->oldSubscriberName)
		snprintf(pParams->oldSubscriberName, pParams->oldSubscriberSize, "%s",
			 the_subscriber.name);
	return result;
}
#endif

CUptiResult do_cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	struct subscriber *subscriber = subscriber_of(handle);

	if (!subscriber)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (int domain = 0; domain < CUPTI_N_DOMAINS; domain++)
		memset((void *)subscriber->is_enabled[domain], 0,
		       sizeof(subscriber->is_enabled[domain]));
	atomic_store(&subscriber->call, NULL);
	atomic_flag_clear(&is_taken);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
				   CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	struct subscriber *subscriber = subscriber_of(handle);

	if (!subscriber || (unsigned)domain >= CUPTI_N_DOMAINS || cbid >= CUPTI_N_CALLBACKS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	subscriber->is_enabled[domain][cbid] = enable != 0;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
				 CUpti_CallbackDomain domain)
{
	struct subscriber *subscriber = subscriber_of(handle);

	if (!subscriber || (unsigned)domain >= CUPTI_N_DOMAINS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (int cbid = 0; cbid < CUPTI_N_CALLBACKS; cbid++)
		subscriber->is_enabled[domain][cbid] = enable != 0;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
	CUptiResult result = CUPTI_SUCCESS;

	for (int domain = CUPTI_CB_DOMAIN_DRIVER_API; domain < CUPTI_N_DOMAINS && !result; domain++)
		result = do_cuptiEnableDomain(enable, handle, (CUpti_CallbackDomain)domain);
	return result;
}

CUptiResult do_cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle,
				     CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	struct subscriber *subscriber = subscriber_of(handle);

	if (!subscriber || !enable || (unsigned)domain >= CUPTI_N_DOMAINS ||
	    cbid >= CUPTI_N_CALLBACKS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*enable = subscriber->is_enabled[domain][cbid];
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	const char *const *names =
		domain == CUPTI_CB_DOMAIN_DRIVER_API ? sim_driver_names : sim_runtime_names;
	unsigned n =
		domain == CUPTI_CB_DOMAIN_DRIVER_API ? sim_n_driver_names : sim_n_runtime_names;
	bool is_named =
		domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;

	if (!name || !is_named || cbid >= n || !names[cbid])
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = names[cbid];
	return CUPTI_SUCCESS;
}

static void call_back(const struct subscriber *subscriber, CUpti_CallbackDomain domain,
		      CUpti_CallbackId cbid, const void *data)
{
	CUpti_CallbackFunc call = atomic_load(&((struct subscriber *)subscriber)->call);

	if (call)
		call(subscriber->data, domain, cbid, data);
}

static bool is_wanted(const struct sim_call *call)
{
	return call->api->domain && call->api->cbid < CUPTI_N_CALLBACKS &&
	       the_subscriber.is_enabled[call->api->domain][call->api->cbid];
}

static void report_call(struct sim_call *call, CUpti_ApiCallbackSite site)
{
	struct sim_context *context = sim_context_current();
	CUpti_CallbackData data = {
		.context = (CUcontext)context,
		.contextUid = context ? context->id : 0,
		.callbackSite = site,
		.functionName = call->api->name,
		.functionParams = call->params,
		.functionReturnValue = site == CUPTI_API_EXIT ? &call->result : NULL,
		.symbolName = call->symbol,
		.correlationData = &call->correlation_data,
		.correlationId = (uint32_t)call->correlation,
	};

	call_back(&the_subscriber, (CUpti_CallbackDomain)call->api->domain, call->api->cbid, &data);
}

/* What the runtime does by the driver is no record of its own, though it is a callback. */
static bool is_nested(const struct sim_call *call)
{
	return call->outer && call->outer->api->domain == SIM_DOMAIN_RUNTIME &&
	       !sim_config()->records_nested;
}

static bool is_call_recorded(const struct sim_call *call)
{
	return !is_nested(call) && call->api->domain && call->api->cbid < CUPTI_N_CALLBACKS &&
	       cupti_recorded_calls[call->api->domain][call->api->cbid];
}

void cupti_call_begins(struct sim_call *call)
{
	if (is_wanted(call))
		report_call(call, CUPTI_API_ENTER);
	if (is_call_recorded(call))
		call->begin_stamp = cupti_stamp();
}

void cupti_call_ends(struct sim_call *call)
{
	if (call->symbol && call->api->domain == SIM_DOMAIN_DRIVER)
		ranges_launched();
	/* One that began before it was enabled is not recorded. */
	if (call->begin_stamp && is_call_recorded(call))
		cupti_record_call(call, call->begin_stamp, cupti_stamp());
	if (is_wanted(call))
		report_call(call, CUPTI_API_EXIT);
	if (!call->outer && cupti_has_much())
		cupti_drain();
}

#if CUDA_VERSION < 12030
/* older headers lack it, the driver has it */
#define CU_GRAPH_NODE_TYPE_CONDITIONAL ((CUgraphNodeType)13)
#endif

static CUgraphNodeType type_of(const struct sim_graph_node *node)
{
	static const CUgraphNodeType types[] = {
#define NODE(work, node) [SIM_##work] = CU_GRAPH_NODE_TYPE_##node,
#include "test/simcuda/driver/node_types.def"
#undef NODE
	};

	return node ? types[node->work.kind] : CU_GRAPH_NODE_TYPE_EMPTY;
}

void cupti_resource(const struct sim_resource_event *event)
{
	CUpti_GraphData graph = {
		.graph = event->graph,
		.originalGraph = event->original_graph,
		.node = (CUgraphNode)event->node,
		.originalNode = (CUgraphNode)event->original_node,
		.nodeType = type_of(event->node),
		.graphExec = event->exec,
	};
	CUpti_ModuleResourceData module = {
		.moduleId = event->module_id,
		.cubinSize = event->module_bytes,
		.pCubin = event->module,
	};
	CUpti_ResourceData data = {.context = (CUcontext)event->context};

	if (event->what == SIM_CONTEXT_CREATED)
		cupti_record_context(event->context);
	if (event->what == SIM_STREAM_CREATED)
		cupti_record_stream(event->stream);
	if (!the_subscriber.is_enabled[CUPTI_CB_DOMAIN_RESOURCE][event->what])
		return;
	data.resourceHandle.stream = (CUstream)event->stream;
	if (event->graph)
		data.resourceDescriptor = &graph;
	else if (event->module)
		data.resourceDescriptor = &module;
	call_back(&the_subscriber, CUPTI_CB_DOMAIN_RESOURCE, (CUpti_CallbackId)event->what, &data);
}
