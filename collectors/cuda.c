/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUDA's driver, at its start, opens the agent by CUDA_INJECTION64_PATH; that is when CUPTI is looked for and asked for
 * records of kernels, copies and memsets, and to be called back around every call that makes a device work. Where that
 * can't be had the program's calls of the driver are watched (collectors/cuda_events.c), and it is said why.
 */
#include "collectors/cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "agent/injection.h"
#include "agent/label.h"
#include "agent/process.h"
#include "agent/text.h"
#include "collectors/cuda_counters.h"
#include "collectors/cuda_memory.h"
#include "collectors/operator_marks.h"
#include "shim/cupti.h"
#include "shim/driver.h"
#include "shim/hooks.h"
#include "shim/objects.h"

#define FLUSH_EVERY_MS 1000u
#define N_CALLS 2048u /* callback ids of a domain; there are some 850 */
#define API_NAME_MAX 64u

struct cuda_losses torsh_cuda_losses;
_Atomic uint64_t torsh_cuda_own_kinds;
uint32_t torsh_cuda_version;

/* In pages that a forked child gets as zeros, by whatever call it was made. */
struct live {
	_Atomic uint32_t is_attached;
	_Atomic uint32_t is_ending;
};

static struct live *live;
static _Atomic int was_injected; /* or it was decided otherwise how devices are seen; also in children */

static _Atomic uint32_t api_labels[CUPTI_N_API_DOMAINS][N_CALLS];
static _Atomic uint8_t is_launching[CUPTI_N_API_DOMAINS][N_CALLS]; /* calls that give a device something to do */

int torsh_cuda_is_live(void)
{
	return live && atomic_load_explicit(&live->is_attached, memory_order_acquire);
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static void send(const struct event *event)
{
	struct flow *flow = torsh_flow_enter();

	if (!flow)
		return;
	torsh_flow_event(flow, event, NULL);
	torsh_flow_leave(flow);
}

static void say_mode(enum device_mode mode, const char *reason)
{
	struct event event = {.id = EVENT_DEVICE_MODE, .device_mode = {.mode = mode}};

	if (*reason)
		event.device_mode.reason = torsh_label(reason, strlen(reason));
	send(&event);
}

/* What is done without CUPTI: with times, or not where another tool measures. */
static void do_without(const char *reason, int may_mark)
{
	static const char *const notes[] = {
		[DEVICE_HOST_ONLY] = "cuda: of kernels and copies only the calls are recorded: ",
		[DEVICE_BY_EVENTS] = "cuda: times of kernels and copies are those of events around the calls: ",
	};
	enum device_mode mode = may_mark ? DEVICE_BY_EVENTS : DEVICE_HOST_ONLY;
	char buffer[512];
	struct text note = TEXT_IN(buffer);

	if (torsh_cuda_watch_driver(reason, may_mark))
		mode = DEVICE_HOST_ONLY;
	torsh_text_put(&note, notes[mode]);
	torsh_text_put(&note, reason);
	torsh_channel_note(&torsh_process->channel, buffer);
	say_mode(mode, reason);
	torsh_cuda_counters_begin(reason);
}

/* CUPTI's own word for a result. */
static void put_result(struct text *text, int result)
{
	const char *word = NULL;

	if (torsh_cupti.GetResultString && !torsh_cupti.GetResultString(result, &word) && word) {
		torsh_text_put(text, word);
	} else {
		torsh_text_put(text, "CUPTI's error ");
		torsh_text_put_number(text, (uint64_t)result);
	}
}

static void do_without_refused(int result)
{
	char buffer[256];
	struct text reason = TEXT_IN(buffer);

	torsh_text_put(&reason, "CUPTI can't be used: ");
	put_result(&reason, result);
	do_without(buffer, 1);
}

void torsh_cuda_say_losses(void)
{
	struct event event = {
		.id = EVENT_DEVICE_LOSS,
		.device_loss =
			{
				.records = atomic_load_explicit(&torsh_cuda_losses.records, memory_order_relaxed),
				.dropped = atomic_load_explicit(&torsh_cuda_losses.dropped, memory_order_relaxed),
				.without_room =
					atomic_load_explicit(&torsh_cuda_losses.without_room, memory_order_relaxed),
				.invalid = atomic_load_explicit(&torsh_cuda_losses.invalid, memory_order_relaxed),
				.flushes_cut =
					atomic_load_explicit(&torsh_cuda_losses.flushes_cut, memory_order_relaxed),
				.buffers_kept =
					atomic_load_explicit(&torsh_cuda_losses.buffers_kept, memory_order_relaxed),
				.is_dropping_unknown = atomic_load_explicit(&torsh_cuda_losses.is_dropping_unknown,
									    memory_order_relaxed),
			},
	};

	torsh_cuda_clock_errors(&event.device_loss.clock_width_ns, &event.device_loss.clock_step_ns);
	send(&event);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel; "cuMemcpyHtoD_v2" stays. */
static size_t plain_length(const char *name)
{
	const char *suffix = strrchr(name, '_');
	size_t n_digits = suffix && suffix[1] == 'v' ? strspn(suffix + 2, "0123456789") : 0;

	return n_digits >= 4 && !suffix[2 + n_digits] ? (size_t)(suffix - name) : strlen(name);
}

/* Calls by how their names begin; of what is in neither list there is too much, or it does nothing (getters, queries). */
static const char *const launches[] = {
	"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch", "__cudaLaunch",  "cudaMemPrefetch",
	"cuLaunch",   "cuMemcpy",   "cuMemset",	  "cuGraphLaunch",   "cuMemPrefetch", NULL,
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
	"cuStreamEndCapture",
	"cuModuleLoad",
	"cuModuleUnload",
	"cuLibraryLoad",
	"cuCtxCreate",
	"cuCtxDestroy",
	"cuDevicePrimaryCtx",
	NULL,
};

/* A question of the allocator, and asked for each kernel: not what waits. */
static const char *const chatty_calls[] = {"cuDevicePrimaryCtxGetState", "cudaHostGet", "cuMemHostGet", NULL};

static int begins_as(const char *name, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(name, *beginnings, strlen(*beginnings)))
			return 1;
	return 0;
}

/* The outermost call that this thread is in: the runtime does its work by calls of the driver within its own. */
static _Thread_local struct {
	int domain; /* 0: in none */
	uint32_t correlation;
} outermost;

static int is_within(const struct cupti_call *call, int domain)
{
	return outermost.domain &&
	       (outermost.correlation == call->correlation ||
		(outermost.domain == CUPTI_DOMAIN_RUNTIME && domain == CUPTI_DOMAIN_DRIVER));
}

/* Anchors of the counter may lie a little askew. */
static uint64_t since(uint64_t begin_ns)
{
	uint64_t now_ns = torsh_cuda_now_ns();

	return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

/* What launches and other calls say alike. */
#define SAID_OF(call, label, since_ns)                                     \
	{                                                                  \
		.api = (label), .correlation = (call)->correlation,        \
		.result = (call)->result ? *(const int *)(call)->result : 0, \
		.context = (call)->context_id, .begin = (since_ns),        \
		.duration_ns = since(since_ns),                            \
	}

static void record_launch(const struct cupti_call *call, uint32_t api, uint64_t begin_ns)
{
	send(&(struct event){.id = EVENT_LAUNCH, .launch = SAID_OF(call, api, begin_ns)});
}

static void record_call(const struct cupti_call *call, uint32_t api, uint64_t begin_ns)
{
	send(&(struct event){.id = EVENT_DEVICE_CALL, .device_call = SAID_OF(call, api, begin_ns)});
}

#undef SAID_OF

static void end_call(const struct cupti_call *call, int domain, uint32_t id)
{
	uint32_t api = atomic_load_explicit(&api_labels[domain][id], memory_order_relaxed);

	if (!api)
		return;
	if (atomic_load_explicit(&is_launching[domain][id], memory_order_relaxed))
		record_launch(call, api, *call->slot);
	else
		record_call(call, api, *call->slot);
}

static void record_site(const struct cupti_call *call, int domain, uint32_t id, const void *frame)
{
	if (call->site == CUPTI_ENTER) {
		uint64_t now_ns = torsh_cuda_clock_now(); /* here CUPTI holds no lock */

		torsh_cuda_tee_launch();
		*call->slot = is_within(call, domain) ? 0 : now_ns;
		if (!*call->slot)
			return;
		outermost.domain = domain;
		outermost.correlation = call->correlation;
		torsh_cuda_memory_enter(domain, id, call);
	} else if (*call->slot) {
		outermost.domain = 0;
		torsh_cuda_memory_exit(domain, id, call, frame);
		end_call(call, domain, id);
	}
}

static void take_call(int domain, uint32_t id, const struct cupti_call *call, const void *frame)
{
	int is_counted = domain == CUPTI_DOMAIN_DRIVER, saved = errno;

	if (id >= N_CALLS || !torsh_cuda_is_watched(domain, id) || !call->slot)
		return;
	/* What is measured lies around the call as it is recorded. */
	if (is_counted && call->site == CUPTI_ENTER)
		torsh_cuda_counters_call(call, id);
	record_site(call, domain, id, frame);
	if (is_counted && call->site == CUPTI_EXIT)
		torsh_cuda_counters_call(call, id);
	errno = saved;
}

/*
 * A graph's node runs when the graph is launched, but what asked for it is what is open here and now. CUPTI gives a node's
 * number in its callbacks only.
 */
static void take_node(const struct cupti_graph *graph)
{
	struct event event = {.id = EVENT_GRAPH_NODE, .graph_node = {.type = (uint32_t)graph->node_type}};

	if (!graph->node || torsh_cupti.GetGraphNodeId(graph->node, &event.graph_node.node))
		return;
	if (graph->original_node &&
	    torsh_cupti.GetGraphNodeId(graph->original_node, &event.graph_node.original))
		return;
	send(&event);
}

/* What the driver takes down behind our end is not the program's doing. */
static void take_resource(uint32_t id, const struct cupti_resource *resource)
{
	int saved = errno;

	if (!torsh_cuda_is_watched(CUPTI_DOMAIN_RESOURCE, id))
		return;
	if (id == CUPTI_NODE_CREATED || id == CUPTI_NODE_CLONED)
		take_node(resource->descriptor);
	if (id == CUPTI_CONTEXT_ENDS)
		torsh_cuda_counters_context_ends(resource->context);
	if (id == CUPTI_CONTEXT_ENDS && !atomic_load_explicit(&live->is_ending, memory_order_relaxed))
		torsh_cuda_memory_context_ends(resource->context);
	errno = saved;
}

/* Ours is nearest to the call, so that what the other subscriber takes is not the call's time. */
static void at_callback(void *unused, int domain, uint32_t id, const void *data)
{
	int is_api = domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME;
	int is_exit = is_api && ((const struct cupti_call *)data)->site == CUPTI_EXIT;

	(void)unused;
	if (!torsh_cuda_is_live())
		return;
	if (!is_exit)
		torsh_cuda_call_shadow(domain, id, data);
	if (is_api)
		take_call(domain, id, data, __builtin_frame_address(0));
	else if (domain == CUPTI_DOMAIN_RESOURCE)
		take_resource(id, data);
	if (is_exit)
		torsh_cuda_call_shadow(domain, id, data);
}

static void watch_call(int domain, uint32_t id)
{
	const char *name = NULL;
	int is_launch, is_wanted_by_others;

	if (torsh_cupti.GetCallbackName(domain, id, &name) || !name)
		return;
	is_launch = begins_as(name, launches);
	is_wanted_by_others = torsh_cuda_memory_wants(domain, id, name, plain_length(name));
	is_wanted_by_others |= domain == CUPTI_DOMAIN_DRIVER && torsh_cuda_counters_watch(id, name);
	if (is_launch || (begins_as(name, slow_calls) && !begins_as(name, chatty_calls))) {
		atomic_store_explicit(&is_launching[domain][id], (uint8_t)is_launch, memory_order_relaxed);
		atomic_store_explicit(&api_labels[domain][id], torsh_label(name, plain_length(name)),
				      memory_order_relaxed);
	} else if (!is_wanted_by_others) {
		return;
	}
	torsh_cuda_watch_callback(domain, id);
}

static void watch_calls(void)
{
	for (uint32_t id = 1; id < N_CALLS; id++) {
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

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* Tools of NVIDIA's, which measure times themselves: none of ours comes between. */
static int is_measuring_tool(const char *name)
{
	return strstr(name, "nsys") || strstr(name, "Nsight") || strstr(name, "nsight");
}

static void do_without_taken(const char *old_name)
{
	char buffer[256];
	struct text reason = TEXT_IN(buffer);

	torsh_text_put(&reason, "another tool has CUPTI");
	torsh_text_put(&reason, *old_name ? ": " : "");
	torsh_text_put(&reason, old_name);
	do_without(buffer, !is_measuring_tool(old_name));
}

/*
 * Who has the callbacks has the records too: registering for them would take them away. Returns 0; else what is done
 * without them is decided.
 */
static int subscribe(void **subscriber)
{
	char old_name[CUPTI_OLD_NAME_BYTES] = "";
	struct cupti_subscriber_parameters parameters = {
		.n_bytes = sizeof(parameters),
		.name = "torsh",
		.old_name = old_name,
		.old_name_bytes = sizeof(old_name),
	};
	int result;

	if (torsh_cupti.Subscribe_v2)
		result = torsh_cupti.Subscribe_v2(subscriber, at_callback, NULL, &parameters);
	else
		result = torsh_cupti.Subscribe(subscriber, at_callback, NULL);
	if (result == CUPTI_SUBSCRIBER_TAKEN)
		do_without_taken(old_name);
	else if (result)
		do_without_refused(result);
	return result;
}

static int enable(int kind)
{
	int result = torsh_cupti.ActivityEnable(kind);

	if (!result)
		atomic_fetch_or_explicit(&torsh_cuda_own_kinds, 1ull << kind, memory_order_relaxed);
	return result;
}

static int enable_records(void)
{
	static const int kinds[] = {CUPTI_KIND_KERNEL, CUPTI_KIND_COPY, CUPTI_KIND_PEER_COPY, CUPTI_KIND_MEMSET};
	/* What says more about these: some versions lack some, and nobody needs them. */
	static const int further[] = {CUPTI_KIND_DEVICE, CUPTI_KIND_CONTEXT, CUPTI_KIND_STREAM, CUPTI_KIND_WAIT,
				      CUPTI_KIND_OVERHEAD};
	int result = torsh_cupti.ActivityRegisterCallbacks(torsh_cuda_request_buffer, torsh_cuda_complete_buffer);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !result; i++)
		result = enable(kinds[i]);
	for (size_t i = 0; i < sizeof(further) / sizeof(*further) && !result; i++)
		enable(further[i]);
	return result;
}

static void disable_records(void)
{
	static const int kinds[] = {CUPTI_KIND_KERNEL, CUPTI_KIND_COPY, CUPTI_KIND_PEER_COPY, CUPTI_KIND_MEMSET};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		torsh_cupti.ActivityDisable(kinds[i]);
}

/* Returns 0, or it is said what is done without. */
static int find_cupti(void)
{
	int result = torsh_cupti_open();

	if (result == -ENOENT) {
		do_without("there is no libcupti", 1);
		return -ENOENT;
	}
	if (result || torsh_cupti.GetVersion(&torsh_cuda_version) || torsh_cuda_version < CUPTI_VERSION_MIN) {
		do_without("libcupti is older than that of CUDA 12.0", 1);
		return -ENOSYS;
	}
	return 0;
}

static void attach(void)
{
	void *subscriber = NULL;
	int result;

	if (find_cupti() || subscribe(&subscriber))
		return;
	live = torsh_sys_pages(sizeof(*live));
	if (!live) {
		torsh_cupti.Unsubscribe(subscriber);
		do_without("there is no memory", 0);
		return;
	}
	TORSH_SYS(SYS_madvise, live, 4096, MADV_WIPEONFORK, 0, 0, 0);
	atomic_store_explicit(&live->is_attached, 1, memory_order_release);
	torsh_cuda_clock_read(1);
	result = enable_records();
	if (result) {
		atomic_store_explicit(&live->is_attached, 0, memory_order_release);
		disable_records();
		torsh_cupti.Unsubscribe(subscriber);
		do_without_refused(result);
		return;
	}
	atomic_store_explicit(&torsh_driver_watch, DRIVER_UNWATCHED, memory_order_relaxed);
	torsh_cuda_subscribed(subscriber);
	watch_calls();
	torsh_cuda_counters_begin(NULL);
	torsh_cuda_flusher_start();
	if (torsh_cupti.ActivityFlushPeriod)
		torsh_cupti.ActivityFlushPeriod(FLUSH_EVERY_MS);
	say_mode(DEVICE_BY_CUPTI, "");
}

static int is_wanted(void)
{
	return torsh_config.activities & ACTIVITY_CUDA &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON && torsh_process->pid;
}

static int is_of_another_tool(const char *path)
{
	return path && *path && strcmp(path, torsh_agent_path());
}

/* In CUDA's own images this leads to CUPTI, which is taken or not as it turns out. */
static int is_measured_by_nvtx(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");

	return is_of_another_tool(path) && !strstr(path, "libcupti");
}

/* Why we stay passive, in words; NULL: no other tool was started to measure this process. */
static const char *other_tool(void)
{
	if (is_of_another_tool(getenv(TORSH_CUDA_INJECTION)))
		return "another tool's path stands in " TORSH_CUDA_INJECTION;
	if (getenv("NSYS_PROFILING_SESSION_ID") || torsh_objects_has("ToolsInjection"))
		return "Nsight Systems measures this process";
	if (is_measured_by_nvtx())
		return "another tool's path stands in NVTX_INJECTION64_PATH";
	return NULL;
}

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	if (torsh_cuda_is_live() && !torsh_agent_is_borrowed() && !outermost.domain)
		torsh_cuda_memory_exiting();
	torsh_cuda_exiting();
}

void torsh_cuda_injected(void)
{
	struct flow *flow;
	int saved = errno;

	torsh_agent_start();
	if (!is_wanted() || atomic_exchange_explicit(&was_injected, 1, memory_order_acq_rel))
		return;
	/* What CUPTI allocates at its start is nothing of the program's; our own flow comes into being here. */
	flow = torsh_flow_enter();
	if (flow)
		torsh_flow_leave(flow);
	if (other_tool())
		do_without(other_tool(), 0);
	else
		attach();
	/* Runs before what was registered earlier: the driver is still there then. */
	on_exit(at_exit, NULL);
	errno = saved;
}

void torsh_cuda_before_client(void)
{
	static _Thread_local int is_inside;

	/* CUPTI may start the driver, which opens us, which asks CUPTI. */
	if (is_inside)
		return;
	is_inside = 1;
	torsh_cuda_injected();
	is_inside = 0;
}

int torsh_cuda_stands_before_driver(void)
{
	torsh_agent_start();
	return is_wanted();
}

void torsh_cuda_first_work(void)
{
	torsh_agent_start();
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_STARTING)
		return;
	if (!is_wanted()) {
		atomic_store_explicit(&torsh_driver_watch, DRIVER_UNWATCHED, memory_order_relaxed);
		return;
	}
	if (atomic_exchange_explicit(&was_injected, 1, memory_order_acq_rel))
		return;
	if (other_tool())
		do_without(other_tool(), 0);
	else
		do_without("the driver did not open the agent, which stands in " TORSH_CUDA_INJECTION, 1);
	on_exit(at_exit, NULL);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* The driver did not call us, though the program did use CUDA, or would have. */
static void say_why_not_injected(void)
{
	if (!is_wanted() || torsh_agent_is_borrowed() || atomic_exchange_explicit(&was_injected, 1, memory_order_acq_rel))
		return;
	if (is_of_another_tool(getenv(TORSH_CUDA_INJECTION)) && torsh_objects_has("/libcuda.so"))
		do_without(other_tool(), 0);
	else if (torsh_objects_has("/libcudart.so"))
		/* No note in every report: much is built with CUDA that runs without. */
		say_mode(DEVICE_HOST_ONLY, "CUDA's runtime is loaded, but no driver started in this process");
}

__attribute__((constructor)) static void construct(void)
{
	torsh_agent_start();
	if (is_wanted())
		on_exit(at_exit, NULL);
}

void torsh_cuda_exiting(void)
{
	torsh_operator_marks_finish();
	say_why_not_injected();
	torsh_cuda_end_marks();
	if (!torsh_cuda_is_live() || torsh_agent_is_borrowed())
		return;
	atomic_store_explicit(&live->is_ending, 1, memory_order_relaxed);
	torsh_cuda_counters_end();
	torsh_cuda_flush(1);
	torsh_cuda_counters_check_records(atomic_load_explicit(&torsh_cuda_losses.records, memory_order_relaxed));
}

void torsh_cuda_executing(void)
{
	if (torsh_cuda_is_live() && !torsh_agent_is_borrowed())
		torsh_cuda_flush(0);
}
