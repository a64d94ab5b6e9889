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
#include "collectors/cuda_counters.h"
#include "shim/cupti.h"
#include "shim/hooks.h"
#include "shim/objects.h"

#define FLUSH_EVERY_MS 1000u
#define N_CALLS 2048u /* callback ids of a domain; there are some 850 */
#define API_NAME_MAX 64u

struct cuda_losses torsh_cuda_losses;

/* In pages that a forked child gets as zeros, by whatever call it was made. */
struct live {
	_Atomic uint32_t is_attached;
	_Atomic uint32_t is_ending; /* the last flush has begun */
};

static struct live *live;
static int was_injected; /* also in children */

static _Atomic uint32_t api_labels[CUPTI_N_DOMAINS][N_CALLS];

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

static void say_losses(void)
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

/* The names that begin so are of calls which give a device something to do. */
static int is_launch(const char *name)
{
	static const char *const beginnings[] = {
		"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch", "__cudaLaunch",  "cudaMemPrefetch",
		"cuLaunch",   "cuMemcpy",   "cuMemset",	  "cuGraphLaunch",   "cuMemPrefetch",
	};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return 1;
	return 0;
}

/* A driver's call within one of the runtime's, where both have one number. */
static _Thread_local uint32_t open_correlation;

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
				.duration_ns = torsh_cuda_monotonic_ns() - begin_ns,
			},
	};

	send(&event);
}

static void see_launch(const struct cupti_call *call, uint32_t api)
{
	if (call->site == CUPTI_ENTER) {
		/* Here CUPTI holds no lock. */
		torsh_cuda_clock_read(0);
		torsh_cuda_tee_launch();
		*call->slot = call->correlation == open_correlation ? 0 : torsh_cuda_monotonic_ns();
		open_correlation = call->correlation;
	} else if (*call->slot) {
		open_correlation = 0;
		record_launch(call, api, *call->slot);
	}
}

static void at_call(void *unused, int domain, uint32_t id, const void *data)
{
	const struct cupti_call *call = data;
	int saved = errno, is_counted = domain == CUPTI_DOMAIN_DRIVER;
	uint32_t api;

	(void)unused;
	if (!torsh_cuda_is_live())
		return;
	if (domain == CUPTI_DOMAIN_RESOURCE && id == CUPTI_CONTEXT_ENDS)
		torsh_cuda_counters_context_ends(((const struct cupti_resource *)data)->context);
	if (domain >= CUPTI_N_DOMAINS || id >= N_CALLS || !call->slot)
		return;
	/* What is measured lies around the call as it is recorded. */
	if (is_counted && call->site == CUPTI_ENTER)
		torsh_cuda_counters_call(call, id);
	api = atomic_load_explicit(&api_labels[domain][id], memory_order_relaxed);
	if (api)
		see_launch(call, api);
	if (is_counted && call->site == CUPTI_EXIT)
		torsh_cuda_counters_call(call, id);
	errno = saved;
}

static void watch_call(void *subscriber, int domain, uint32_t id)
{
	const char *name = NULL;
	int is_watched;

	if (torsh_cupti.GetCallbackName(domain, id, &name) || !name)
		return;
	is_watched = domain == CUPTI_DOMAIN_DRIVER && torsh_cuda_counters_watch(id, name);
	if (is_launch(name))
		atomic_store_explicit(&api_labels[domain][id], torsh_label(name, plain_length(name)),
				      memory_order_relaxed);
	else if (!is_watched)
		return;
	torsh_cupti.EnableCallback(1, subscriber, domain, id);
}

static void watch_calls(void *subscriber)
{
	for (uint32_t id = 1; id < N_CALLS; id++) {
		watch_call(subscriber, CUPTI_DOMAIN_DRIVER, id);
		watch_call(subscriber, CUPTI_DOMAIN_RUNTIME, id);
	}
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
		result = torsh_cupti.Subscribe_v2(&subscriber, at_call, NULL, &parameters);
	else
		result = torsh_cupti.Subscribe(&subscriber, at_call, NULL);
	if (!result) {
		watch_calls(subscriber);
		torsh_cuda_counters_begin(subscriber);
		return;
	}
	torsh_cuda_counters_begin(NULL);
	torsh_text_put(&note, "cuda: kernels have no operators: ");
	torsh_text_put(&note, result == CUPTI_SUBSCRIBER_TAKEN ? "another tool has CUPTI's callbacks"
							       : "CUPTI has no callbacks for us");
	torsh_text_put(&note, *old_name ? ": " : "");
	torsh_text_put(&note, old_name);
	torsh_channel_note(&torsh_process->channel, buffer);
}

static int enable_records(void)
{
	static const int kinds[] = {CUPTI_KIND_KERNEL, CUPTI_KIND_COPY, CUPTI_KIND_PEER_COPY, CUPTI_KIND_MEMSET};
	int result = torsh_cupti.ActivityRegisterCallbacks(torsh_cuda_request_buffer, torsh_cuda_complete_buffer);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !result; i++)
		result = torsh_cupti.ActivityEnable(kinds[i]);
	return result;
}

static void attach(void)
{
	uint32_t version = 0;
	int result = torsh_cupti_open();

	if (result == -ENOENT) {
		give_up("there is no libcupti", 0);
		return;
	}
	if (result || torsh_cupti.GetVersion(&version) || version < CUPTI_VERSION_MIN) {
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

/* The driver calls the tool that was there first, and not us: said where the program did use CUDA. */
static void say_if_displaced(void)
{
	if (!was_injected && is_wanted() && !torsh_agent_is_borrowed() &&
	    is_of_another_tool(getenv(TORSH_CUDA_INJECTION)) && torsh_objects_has("/libcuda.so"))
		give_up("another tool's path stands in " TORSH_CUDA_INJECTION, 0);
	was_injected = 1;
}

__attribute__((constructor)) static void look_for_another_tool(void)
{
	torsh_agent_start();
	if (is_wanted() && is_of_another_tool(getenv(TORSH_CUDA_INJECTION)))
		on_exit(at_exit, NULL);
}

void torsh_cuda_exiting(void)
{
	say_if_displaced();
	if (!torsh_cuda_is_live() || torsh_agent_is_borrowed() ||
	    atomic_exchange_explicit(&live->is_ending, 1, memory_order_relaxed))
		return;
	torsh_cuda_clock_read(1);
	torsh_cuda_counters_end();
	/* First what is complete, then what still runs: that has no end, and is counted as invalid. */
	torsh_cupti.ActivityFlushAll(0);
	torsh_cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
	torsh_cuda_counters_check_records(atomic_load_explicit(&torsh_cuda_losses.records, memory_order_relaxed));
	say_losses();
}
