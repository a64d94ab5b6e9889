/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUDA's driver, at its start, opens the agent by CUDA_INJECTION64_PATH; that is when CUPTI is looked for and asked for
 * records of kernels, copies and memsets, and to be called back around every call that makes a device work. Where that
 * can't be had the recording has the host's side only, and says why.
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
#include "shim/cupti.h"
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
};

static struct live *live;
static int was_injected; /* also in children */

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

/* The reason is what, and CUPTI's own word for the result. */
static void give_up(const char *what, int result)
{
	char buffer[256], sentence[320];
	struct text reason = TEXT_IN(buffer), note = TEXT_IN(sentence);
	const char *word = NULL;

	torsh_text_put(&reason, what);
	if (result) {
		torsh_text_put(&reason, ": ");
		if (torsh_cupti.GetResultString && !torsh_cupti.GetResultString(result, &word) && word) {
			torsh_text_put(&reason, word);
		} else {
			torsh_text_put(&reason, "CUPTI's error ");
			torsh_text_put_number(&reason, (uint64_t)result);
		}
	}
	torsh_text_put(&note, "cuda: neither kernels nor copies are recorded: ");
	torsh_text_put(&note, buffer);
	torsh_channel_note(&torsh_process->channel, sentence);
	say_mode(DEVICE_HOST_ONLY, buffer);
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

/* A driver's call within one of the runtime's, where both have one number. */
static _Thread_local uint32_t open_correlation;

/* Anchors of the counter may lie a little askew. */
static uint64_t since(uint64_t begin_ns)
{
	uint64_t now_ns = torsh_cuda_now_ns();

	return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

static void record_launch(const struct cupti_call *call, uint32_t api, uint64_t begin_ns)
{
	struct event event = {
		.id = EVENT_LAUNCH,
		.launch =
			{
				.api = api,
				.correlation = call->correlation,
				.result = call->result ? *(const int *)call->result : 0,
				.context = call->context_id,
				.begin = begin_ns,
				.duration_ns = since(begin_ns),
			},
	};

	send(&event);
}

static void record_call(const struct cupti_call *call, uint32_t api, uint64_t begin_ns)
{
	struct event event = {
		.id = EVENT_DEVICE_CALL,
		.device_call =
			{
				.api = api,
				.correlation = call->correlation,
				.result = call->result ? *(const int *)call->result : 0,
				.context = call->context_id,
				.begin = begin_ns,
				.duration_ns = since(begin_ns),
			},
	};

	send(&event);
}

static void end_call(const struct cupti_call *call, int domain, uint32_t id)
{
	uint32_t api = atomic_load_explicit(&api_labels[domain][id], memory_order_relaxed);

	open_correlation = 0;
	if (atomic_load_explicit(&is_launching[domain][id], memory_order_relaxed))
		record_launch(call, api, *call->slot);
	else
		record_call(call, api, *call->slot);
}

static void take_call(const struct cupti_call *call, int domain, uint32_t id)
{
	if (call->site == CUPTI_ENTER) {
		uint64_t now_ns = torsh_cuda_clock_now(); /* here CUPTI holds no lock */

		torsh_cuda_tee_launch();
		*call->slot = call->correlation == open_correlation ? 0 : now_ns;
		open_correlation = call->correlation;
	} else if (*call->slot) {
		end_call(call, domain, id);
	}
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

static void at_callback(void *unused, int domain, uint32_t id, const void *data)
{
	int saved = errno;

	(void)unused;
	if (!torsh_cuda_is_live())
		return;
	if (domain == CUPTI_DOMAIN_RESOURCE && (id == CUPTI_NODE_CREATED || id == CUPTI_NODE_CLONED))
		take_node(((const struct cupti_resource *)data)->descriptor);
	else if (domain < CUPTI_N_API_DOMAINS && id < N_CALLS && ((const struct cupti_call *)data)->slot)
		take_call(data, domain, id);
	errno = saved;
}

static void watch_call(void *subscriber, int domain, uint32_t id)
{
	const char *name = NULL;
	int is_launch;

	if (torsh_cupti.GetCallbackName(domain, id, &name) || !name)
		return;
	is_launch = begins_as(name, launches);
	if (!is_launch && (!begins_as(name, slow_calls) || begins_as(name, chatty_calls)))
		return;
	atomic_store_explicit(&is_launching[domain][id], (uint8_t)is_launch, memory_order_relaxed);
	atomic_store_explicit(&api_labels[domain][id], torsh_label(name, plain_length(name)), memory_order_relaxed);
	torsh_cupti.EnableCallback(1, subscriber, domain, id);
}

static void watch_calls(void *subscriber)
{
	for (uint32_t id = 1; id < N_CALLS; id++) {
		watch_call(subscriber, CUPTI_DOMAIN_DRIVER, id);
		watch_call(subscriber, CUPTI_DOMAIN_RUNTIME, id);
	}
	if (!torsh_cupti.GetGraphNodeId)
		return;
	torsh_cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_NODE_CREATED);
	torsh_cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_NODE_CLONED);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* Kernels without launches are better than nothing: they have no operator then, and it is said why. */
static void subscribe(void)
{
	char old_name[CUPTI_OLD_NAME_BYTES] = "", buffer[256];
	struct cupti_subscriber_parameters parameters = {
		.n_bytes = sizeof(parameters),
		.name = "torsh",
		.old_name = old_name,
		.old_name_bytes = sizeof(old_name),
	};
	struct text note = TEXT_IN(buffer);
	void *subscriber = NULL;
	int result;

	if (torsh_cupti.Subscribe_v2)
		result = torsh_cupti.Subscribe_v2(&subscriber, at_callback, NULL, &parameters);
	else
		result = torsh_cupti.Subscribe(&subscriber, at_callback, NULL);
	if (!result) {
		watch_calls(subscriber);
		return;
	}
	torsh_text_put(&note, "cuda: kernels have no operators: ");
	torsh_text_put(&note, result == CUPTI_SUBSCRIBER_TAKEN ? "another tool has CUPTI's callbacks"
							       : "CUPTI has no callbacks for us");
	torsh_text_put(&note, *old_name ? ": " : "");
	torsh_text_put(&note, old_name);
	torsh_channel_note(&torsh_process->channel, buffer);
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

static void attach(void)
{
	int result = torsh_cupti_open();

	if (result == -ENOENT) {
		give_up("there is no libcupti", 0);
		return;
	}
	if (result || torsh_cupti.GetVersion(&torsh_cuda_version) || torsh_cuda_version < CUPTI_VERSION_MIN) {
		give_up("libcupti is older than that of CUDA 12.0", 0);
		return;
	}
	live = torsh_sys_pages(sizeof(*live));
	if (!live) {
		give_up("there is no memory", 0);
		return;
	}
	TORSH_SYS(SYS_madvise, live, 4096, MADV_WIPEONFORK, 0, 0, 0);
	atomic_store_explicit(&live->is_attached, 1, memory_order_release);
	torsh_cuda_clock_read(1);
	result = enable_records();
	if (result) {
		atomic_store_explicit(&live->is_attached, 0, memory_order_release);
		give_up("CUPTI can't be used", result);
		return;
	}
	subscribe();
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

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	torsh_cuda_exiting();
}

void torsh_cuda_injected(void)
{
	struct flow *flow;
	int saved = errno;

	torsh_agent_start();
	if (!is_wanted() || was_injected)
		return;
	was_injected = 1;
	/* What CUPTI allocates at its start is nothing of the program's; our own flow comes into being here. */
	flow = torsh_flow_enter();
	if (flow)
		torsh_flow_leave(flow);
	attach();
	/* Runs before what was registered earlier: the driver is still there then. */
	if (torsh_cuda_is_live())
		on_exit(at_exit, NULL);
	errno = saved;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int is_of_another_tool(const char *path)
{
	return path && *path && strcmp(path, torsh_agent_path());
}

/* The driver did not call us, though the program did use CUDA, or would have. */
static void say_why_not_injected(void)
{
	if (is_of_another_tool(getenv(TORSH_CUDA_INJECTION)) && torsh_objects_has("/libcuda.so"))
		give_up("another tool's path stands in " TORSH_CUDA_INJECTION, 0);
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
	if (!was_injected && is_wanted() && !torsh_agent_is_borrowed())
		say_why_not_injected();
	was_injected = 1;
	if (!torsh_cuda_is_live() || torsh_agent_is_borrowed())
		return;
	torsh_cuda_flush(1);
}

void torsh_cuda_executing(void)
{
	if (torsh_cuda_is_live() && !torsh_agent_is_borrowed())
		torsh_cuda_flush(0);
}
