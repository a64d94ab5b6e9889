/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is enabled, the attributes of recording, and queries without it. */
#include "test/simcuda/cupti/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/simcuda/cupti/layouts.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/graph.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/result.h"

struct cupti_kind cupti_kinds[CUPTI_N_KINDS];
_Atomic uint8_t cupti_recorded_calls[3][CUPTI_N_CALLBACKS];

static CUpti_ActivityThreadIdType thread_id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;

bool cupti_is_recorded(CUpti_ActivityKind kind, uint64_t t_ns)
{
	const struct cupti_kind *k = &cupti_kinds[kind];

	return t_ns >= k->since_ns && k->since_ns && (k->is_on || t_ns <= k->until_ns);
}

CUptiResult cupti_check(void)
{
	if (sim_is_forked())
		sim_violation("CUPTI was called in a forked child, where the real one may hang");
	return sim_config()->driver == SIM_DRIVER_PRESENT && sim_config()->n_devices
		       ? CUPTI_SUCCESS
		       : CUPTI_ERROR_UNKNOWN;
}

void cupti_attach(void)
{
	static const struct sim_tracer tracer = {
		.call_begins = cupti_call_begins,
		.call_ends = cupti_call_ends,
		.op_ends = cupti_op_ends,
		.memory = cupti_memory,
		.waited = cupti_waited,
		.resource = cupti_resource,
	};

	sim_tracer_set(&tracer);
}

/*
 * Calls are recorded by kind, and by the domain of their callbacks; 0: the kind is none of calls.
 */
static int domain_of(CUpti_ActivityKind kind)
{
	return kind == CUPTI_ACTIVITY_KIND_DRIVER    ? SIM_DOMAIN_DRIVER
	       : kind == CUPTI_ACTIVITY_KIND_RUNTIME ? SIM_DOMAIN_RUNTIME
						     : 0;
}

/*
 * Kinds that the simulated device has nothing of are accepted like the real one does where the
 * device lacks it.
 */
static bool is_known(CUpti_ActivityKind kind)
{
	return kind > CUPTI_ACTIVITY_KIND_INVALID && (unsigned)kind < CUPTI_N_KINDS;
}

static void set_calls(CUpti_ActivityKind kind, bool is_on)
{
	int domain = domain_of(kind);

	for (int cbid = 0; domain && cbid < CUPTI_N_CALLBACKS; cbid++)
		cupti_recorded_calls[domain][cbid] = is_on;
}

CUptiResult do_cuptiActivityEnable(CUpti_ActivityKind kind)
{
	CUptiResult result = cupti_check();

	if (result)
		return result;
	if (!is_known(kind))
		return CUPTI_ERROR_INVALID_KIND;
	cupti_attach();
	if (!cupti_kinds[kind].is_on)
		cupti_kinds[kind].since_ns = sim_now();
	cupti_kinds[kind].is_on = true;
	set_calls(kind, true);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityDisable(CUpti_ActivityKind kind)
{
	CUptiResult result = cupti_check();

	if (result)
		return result;
	if (!is_known(kind))
		return CUPTI_ERROR_INVALID_KIND;
	cupti_kinds[kind].until_ns = sim_now();
	cupti_kinds[kind].is_on = false;
	set_calls(kind, false);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
	return sim_context_is_live((struct sim_context *)context) ? do_cuptiActivityEnable(kind)
								  : CUPTI_ERROR_INVALID_CONTEXT;
}

CUptiResult do_cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
	return sim_context_is_live((struct sim_context *)context) ? do_cuptiActivityDisable(kind)
								  : CUPTI_ERROR_INVALID_CONTEXT;
}

static CUptiResult set_call(int domain, CUpti_CallbackId cbid, uint8_t enable)
{
	CUptiResult result = cupti_check();

	if (result)
		return result;
	if (!cbid || cbid >= CUPTI_N_CALLBACKS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	cupti_attach();
	cupti_recorded_calls[domain][cbid] = enable != 0;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return set_call(SIM_DOMAIN_RUNTIME, cbid, enable);
}

CUptiResult do_cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return set_call(SIM_DOMAIN_DRIVER, cbid, enable);
}

/* ---- attributes and switches ----------------------------------------------------------------- */

enum { N_ATTRIBUTES = 16 };

static size_t attributes[N_ATTRIBUTES] = {
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = 3200000,
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = 250,
#if CUPTI_API_VERSION >= CUPTI_12_3
	[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = 1,
#endif
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = 3,
};

CUptiResult do_cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
					 void *value)
{
	if (!valueSize || !value || (unsigned)attr >= N_ATTRIBUTES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*valueSize > sizeof(attributes[attr]))
		return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	attributes[attr] = 0;
	memcpy(&attributes[attr], value, *valueSize);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
					 void *value)
{
	if (!valueSize || !value || (unsigned)attr >= N_ATTRIBUTES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*valueSize > sizeof(attributes[attr]))
		*valueSize = sizeof(attributes[attr]);
	memcpy(value, &attributes[attr], *valueSize);
	return CUPTI_SUCCESS;
}

/* Switches for what the simulated records don't carry: obeyed by carrying nothing. */
#define SWITCH(name)                          \
	CUptiResult do_##name(uint8_t enable) \
	{                                     \
		return cupti_check();         \
	}
SWITCH(cuptiActivityEnableLatencyTimestamps)
SWITCH(cuptiActivityEnableLaunchAttributes)
SWITCH(cuptiActivityEnableAllSyncRecords)
SWITCH(cuptiActivityEnableAllocationSource)
SWITCH(cuptiActivityEnableCudaEventDeviceTimestamps)
SWITCH(cuptiActivityEnableDeviceGraph)
#undef SWITCH

CUptiResult do_cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	if ((unsigned)type > CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return CUPTI_ERROR_INVALID_PARAMETER;
	thread_id_type = type;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	*type = thread_id_type;
	return CUPTI_SUCCESS;
}

/* ---- flushing -------------------------------------------------------------------------------- */

CUptiResult do_cuptiActivityFlushAll(uint32_t flag)
{
	CUptiResult result = cupti_check();
	uint64_t begin;

	if (result)
		return result;
	begin = cupti_stamp();
	if (sim_config()->flush_ns)
		nanosleep(
			&(struct timespec){.tv_sec = (time_t)(sim_config()->flush_ns / 1000000000),
					   .tv_nsec = (long)(sim_config()->flush_ns % 1000000000)},
			NULL);
	sim_lock();
	sim_run();
	sim_unlock();
	if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
		cupti_force_out();
	if (cupti_drain())
		cupti_record_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, begin,
				      cupti_stamp());
	cupti_complete_all();
	return CUPTI_SUCCESS;
}

static _Atomic uint32_t period_ms;

static void *flush_periodically(void *unused)
{
	for (;;) {
		uint32_t ms = period_ms;
		struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

		if (!ms)
			time.tv_sec = 1;
		nanosleep(&time, NULL);
		if (period_ms)
			do_cuptiActivityFlushAll(0);
	}
	return NULL;
}

static void start_worker(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, flush_periodically, NULL))
		pthread_detach(thread);
}

CUptiResult do_cuptiActivityFlushPeriod(uint32_t time)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CUptiResult result = cupti_check();

	if (result)
		return result;
	period_ms = time;
	if (time)
		pthread_once(&once, start_worker);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiFinalize(void)
{
	if (cupti_check())
		return CUPTI_SUCCESS;
	period_ms = 0;
	do_cuptiActivityFlushAll(0);
	sim_tracer_set(NULL);
	for (int kind = 1; kind < CUPTI_N_KINDS; kind++)
		do_cuptiActivityDisable((CUpti_ActivityKind)kind);
	cupti_forget();
	return CUPTI_SUCCESS;
}

/* ---- queries ----------------------------------------------------------------------- */

CUptiResult do_cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = (uint32_t)layout_version();
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
	if (!sim_context_is_live((struct sim_context *)context) || !deviceId)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*deviceId = (uint32_t)((struct sim_context *)context)->device->ordinal;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
	if (!sim_context_is_live((struct sim_context *)context) || !contextId)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*contextId = ((struct sim_context *)context)->id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
				  uint32_t *streamId)
{
	struct sim_context *c = (struct sim_context *)context;
	struct sim_stream *s = (struct sim_stream *)stream;

	if (!stream && !sim_context_is_live(c))
		return CUPTI_ERROR_INVALID_CONTEXT;
	if (!stream)
		s = perThreadStream ? sim_stream_of_thread(c) : c->legacy;
	if (!sim_stream_is_live(s))
		return CUPTI_ERROR_INVALID_STREAM;
	*streamId = s->id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
	return do_cuptiGetStreamIdEx(context, stream, 0, streamId);
}

CUptiResult do_cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
	if (!node || !nodeId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*nodeId = ((struct sim_graph_node *)node)->id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
	if (!sim_graph_is_live((struct sim_graph *)graph) || !pId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*pId = ((struct sim_graph *)graph)->id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
	if (!sim_exec_is_live((struct sim_exec *)graphExec) || !pId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*pId = ((struct sim_exec *)graphExec)->id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetResultString(CUptiResult result, const char **str)
{
	if (!str || result < 0 || (unsigned)result >= sim_n_result_names ||
	    !sim_result_names[result])
		return CUPTI_ERROR_INVALID_PARAMETER;
	*str = sim_result_names[result];
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiGetErrorMessage(CUptiResult result, const char **str)
{
	return do_cuptiGetResultString(result, str);
}
