/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The program's CUDA calls, in CUPTI's callbacks: launches, calls that may wait, calls about
 * memory, and graph nodes as they are created.
 */
#include "collectors/cuda/cupti/cuda_calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "collectors/cuda/cupti/cuda_shadow.h"
#include "collectors/cuda/cupti/cuda_tee.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/cuda/memory/cuda_graph_memory.h"
#include "collectors/cuda/memory/cuda_memory_callbacks.h"
#include "collectors/cuda/memory/cuda_memory_info.h"
#include "shim/cuda/cupti.h"
#include "shim/sys.h"

/* How a call is handled; none: only another client enabled it. */
enum call_kind {
	CALL_LAUNCHES = 1, /* it starts work on a device */
	CALL_IS_TIMED = 2, /* it starts work, or may wait */
	CALL_ON_MEMORY = 4,
	CALL_IS_COUNTED = 8, /* by collectors/cuda/counters/cuda_counters.c */
};

/* By domain and number; NULL until calls are watched. */
static struct {
	_Atomic uint8_t kinds[CUPTI_N_API_DOMAINS][CUPTI_CALLS_MAX];
	_Atomic uint32_t labels[CUPTI_N_API_DOMAINS][CUPTI_CALLS_MAX];
} * watched;

/* "cudaLaunchKernel_v7000" becomes cudaLaunchKernel; "cuMemcpyHtoD_v2" stays. */
static size_t plain_length(const char *name)
{
	const char *suffix = strrchr(name, '_');
	size_t n_digits = suffix && suffix[1] == 'v' ? strspn(suffix + 2, "0123456789") : 0;

	return n_digits >= 4 && !suffix[2 + n_digits] ? (size_t)(suffix - name) : strlen(name);
}

/*
 * Calls by the beginnings of their names. Calls in neither list are too frequent, or do nothing
 * (getters, queries).
 */
static const char *const launches[] = {
	"cudaLaunch",	"cudaMemcpy",	   "cudaMemset",    "cudaGraphLaunch",
	"__cudaLaunch", "cudaMemPrefetch", "cuLaunch",	    "cuMemcpy",
	"cuMemset",	"cuGraphLaunch",   "cuMemPrefetch", NULL,
};

static const char *const slow_calls[] = {
	"cudaDeviceSynchronize",
	"cudaStreamSynchronize",
	"cudaStreamWaitEvent",
	"cudaStreamCreate",
	"cudaStreamDestroy",
	"cudaEventSynchronize",
	"cudaEventRecord",
	"cudaMalloc",
	"cudaFree",
	"cudaHost",
	"cudaMemMap",
	"cudaGraphInstantiate",
	"cudaGraphExecUpdate",
	"cudaStreamBeginCapture",
	"cudaStreamEndCapture",
	"cudaLibraryLoad",
	"cudaDeviceReset",
	"cuCtxSynchronize",
	"cuStreamSynchronize",
	"cuStreamWaitEvent",
	"cuStreamCreate",
	"cuStreamDestroy",
	"cuEventSynchronize",
	"cuEventRecord",
	"cuMemAlloc",
	"cuMemFree",
	"cuMemHost",
	"cuMemCreate",
	"cuMemMap",
	"cuMemUnmap",
	"cuMemRelease",
	"cuGraphInstantiate",
	"cuGraphExecUpdate",
	"cuStreamBeginCapture",
	"cuStreamEndCapture",
	"cuModuleLoad",
	"cuModuleUnload",
	"cuLibraryLoad",
	"cuCtxCreate",
	"cuCtxDestroy",
	"cuDevicePrimaryCtx",
	NULL,
};

/* A query that the allocator makes for each kernel: not a call that waits. */
static const char *const chatty_calls[] = {"cuDevicePrimaryCtxGetState", "cudaHostGet",
					   "cuMemHostGet", NULL};

static int begins_as(const char *name, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(name, *beginnings, strlen(*beginnings)))
			return 1;
	return 0;
}

/* The outermost call of this thread: the runtime implements its calls by driver calls. */
static _Thread_local struct {
	int domain; /* 0: in none */
	uint32_t correlation;
} outermost;

static bool is_within(const struct cupti_call *call, int domain)
{
	return outermost.domain &&
	       (outermost.correlation == call->correlation ||
		(outermost.domain == CUPTI_DOMAIN_RUNTIME && domain == CUPTI_DOMAIN_DRIVER));
}

bool torsh_cuda_is_in_call(void)
{
	return outermost.domain != 0;
}

/* Anchors of the counter may be slightly off. */
static uint64_t since(uint64_t begin_ns)
{
	uint64_t now_ns = torsh_cuda_now_ns();

	return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

/* Fields that launches and other calls have in common. */
#define REPORTED_OF(call, label, since_ns)                                   \
	{                                                                    \
		.api = (label), .correlation = (call)->correlation,          \
		.result = (call)->result ? *(const int *)(call)->result : 0, \
		.context = (call)->context_id, .begin = (since_ns),          \
		.duration_ns = since(since_ns),                              \
	}

static void record_launch(const struct cupti_call *call, uint32_t api, uint64_t begin_ns,
			  const void *frame)
{
	const void *stack_of = torsh_config.operator_stacks ? frame : NULL;
	struct event event; /* not initialised as a whole: others are far larger */

	event.id = EVENT_LAUNCH;
	event.launch = (struct event_launch)REPORTED_OF(call, api, begin_ns);
	event.launch.flags = stack_of ? CALL_HAS_STACK : 0;
	torsh_producer_send(&event, stack_of);
}

static void record_call(const struct cupti_call *call, uint32_t api, uint64_t begin_ns)
{
	struct event event;

	event.id = EVENT_DEVICE_CALL;
	event.device_call = (struct event_device_call)REPORTED_OF(call, api, begin_ns);
	torsh_cuda_send(&event);
}

#undef REPORTED_OF

static void begin_call(const struct cupti_call *call, int domain, uint32_t id, uint32_t kinds)
{
	*call->slot = 0;
	if (is_within(call, domain)) {
		if (kinds & CALL_ON_MEMORY)
			torsh_cuda_memory_enter(domain, id, call, 1);
		return;
	}
	/*
	 * CUPTI holds no lock here: clocks may be read, and the other client may be called for a
	 * buffer.
	 */
	*call->slot = torsh_cuda_clock_now();
	torsh_cuda_tee_launch();
	outermost.domain = domain;
	outermost.correlation = call->correlation;
	if (kinds & CALL_ON_MEMORY)
		torsh_cuda_memory_enter(domain, id, call, 0);
}

static void end_call(const struct cupti_call *call, int domain, uint32_t id, uint32_t kinds,
		     const void *frame)
{
	uint32_t api = atomic_load_explicit(&watched->labels[domain][id], memory_order_relaxed);

	if (!*call->slot) {
		if (kinds & CALL_ON_MEMORY)
			torsh_cuda_memory_exit(domain, id, call, 1, frame);
		return;
	}
	outermost.domain = 0;
	if (kinds & CALL_ON_MEMORY)
		torsh_cuda_memory_exit(domain, id, call, 0, frame);
	if (kinds & CALL_LAUNCHES)
		record_launch(call, api, *call->slot, frame);
	else if (kinds & CALL_IS_TIMED)
		record_call(call, api, *call->slot);
}

static void take_call(int domain, uint32_t id, const struct cupti_call *call, const void *frame)
{
	uint32_t kinds = id < CUPTI_CALLS_MAX ? atomic_load_explicit(&watched->kinds[domain][id],
								     memory_order_relaxed)
					      : 0;
	int saved = errno;

	if (!kinds || !call->slot)
		return;
	/* A measurement encloses the recorded call. */
	if (kinds & CALL_IS_COUNTED && call->site == CUPTI_ENTER)
		torsh_cuda_counters_call(call, id);
	if (call->site == CUPTI_ENTER)
		begin_call(call, domain, id, kinds);
	else
		end_call(call, domain, id, kinds, frame);
	if (kinds & CALL_IS_COUNTED && call->site == CUPTI_EXIT)
		torsh_cuda_counters_call(call, id);
	errno = saved;
}

/*
 * A graph's node runs when the graph is launched, but it belongs to the operators that are open
 * here, and to the stack of this call. A clone has its original's. CUPTI passes a node's number
 * only to callbacks.
 */
static void take_node(const struct cupti_graph *graph, const void *frame)
{
	const void *stack_of = torsh_config.with_stack && !graph->original_node ? frame : NULL;
	struct event event = {
		.id = EVENT_GRAPH_NODE,
		.graph_node = {.type = (uint32_t)graph->node_type,
			       .flags = stack_of ? CALL_HAS_STACK : 0},
	};

	if (!graph->original_node && torsh_config.profile_memory)
		torsh_cuda_graph_memory_node(graph);
	if (!graph->node || torsh_cupti.GetGraphNodeId(graph->node, &event.graph_node.node))
		return;
	if (graph->original_node &&
	    torsh_cupti.GetGraphNodeId(graph->original_node, &event.graph_node.original))
		return;
	torsh_producer_send(&event, stack_of);
}

/* What the driver tears down after the agent's end is not a call of the program. */
static void take_resource(uint32_t id, const struct cupti_resource *resource, const void *frame)
{
	int saved = errno;

	if (!torsh_cuda_is_watched(CUPTI_DOMAIN_RESOURCE, id))
		return;
	if (id == CUPTI_NODE_CREATED || id == CUPTI_NODE_CLONED)
		take_node(resource->descriptor, frame);
	if (id == CUPTI_CONTEXT_ENDS)
		torsh_cuda_counters_context_ends(resource->context);
	if (id == CUPTI_CONTEXT_ENDS && torsh_config.profile_memory && !torsh_cuda_is_ending())
		torsh_cuda_memory_context_destroyed(resource->context);
	errno = saved;
}

/* The agent is nearest to the call, so that the other subscriber's time is not the call's. */
void torsh_cuda_called_back(void *unused, int domain, uint32_t id, const void *data)
{
	bool is_api = domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME;
	bool is_exit = is_api && ((const struct cupti_call *)data)->site == CUPTI_EXIT;

	(void)unused;
	/* Driver calls of the agent are neither recorded nor forwarded to the other subscriber. */
	if (!torsh_cuda_is_live() || torsh_cuda_memory_info_is_querying)
		return;
	if (!is_exit)
		torsh_cuda_call_shadow(domain, id, data);
	if (is_api)
		take_call(domain, id, data, __builtin_frame_address(0));
	else if (domain == CUPTI_DOMAIN_RESOURCE)
		take_resource(id, data, __builtin_frame_address(0));
	if (is_exit)
		torsh_cuda_call_shadow(domain, id, data);
}

static uint32_t kinds_by(int domain, uint32_t id, const char *name)
{
	uint32_t kinds = begins_as(name, launches) ? CALL_LAUNCHES : 0;

	if (!kinds && begins_as(name, slow_calls) && !begins_as(name, chatty_calls))
		kinds = CALL_IS_TIMED;
	if (torsh_cuda_memory_wants(domain, id, name, plain_length(name)))
		kinds |= CALL_ON_MEMORY;
	if (domain == CUPTI_DOMAIN_DRIVER && torsh_cuda_counters_watch(id, name))
		kinds |= CALL_IS_COUNTED;
	return kinds;
}

static void watch_call(int domain, uint32_t id)
{
	const char *name = NULL;
	uint32_t kinds;

	if (torsh_cupti.GetCallbackName(domain, id, &name) || !name ||
	    !(kinds = kinds_by(domain, id, name)))
		return;
	if (kinds & (CALL_LAUNCHES | CALL_IS_TIMED))
		atomic_store_explicit(&watched->labels[domain][id],
				      torsh_label(name, plain_length(name)), memory_order_relaxed);
	atomic_store_explicit(&watched->kinds[domain][id], (uint8_t)kinds, memory_order_relaxed);
	torsh_cuda_watch_callback(domain, id);
}

void torsh_cuda_watch_calls(void)
{
	if (!watched)
		watched = torsh_sys_pages(sizeof(*watched));
	if (!watched)
		return;
	for (uint32_t id = 1; id < CUPTI_CALLS_MAX; id++) {
		watch_call(CUPTI_DOMAIN_DRIVER, id);
		watch_call(CUPTI_DOMAIN_RUNTIME, id);
	}
	if (torsh_config.profile_memory)
		torsh_cuda_watch_callback(CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_ENDS);
	if (!torsh_cupti.GetGraphNodeId)
		return;
	torsh_cuda_watch_callback(CUPTI_DOMAIN_RESOURCE, CUPTI_NODE_CREATED);
	torsh_cuda_watch_callback(CUPTI_DOMAIN_RESOURCE, CUPTI_NODE_CLONED);
}
