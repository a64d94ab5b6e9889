/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Attaches to CUPTI and detaches from it. CUDA's driver opens the agent at its start, by
 * CUDA_INJECTION64_PATH; then CUPTI is looked up, and activity records of kernels, copies and
 * memsets and callbacks around launching calls are enabled. If CUPTI is unavailable, the program's
 * driver calls are recorded instead (collectors/cuda/driver/cuda_events.c), and the report has the
 * reason.
 */
#include "collectors/cuda/cuda.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/agent.h"
#include "agent/process/config.h"
#include "agent/process/injection.h"
#include "agent/process/paths.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/cupti/cuda_buffers.h"
#include "collectors/cuda/cupti/cuda_calls.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "collectors/cuda/driver/cuda_events.h"
#include "collectors/cuda/cupti/cuda_flush.h"
#include "collectors/cuda/cupti/cuda_shadow.h"
#include "collectors/cuda/memory/cuda_memory_driver.h"
#include "collectors/cuda/memory/cuda_memory_info.h"
#include "collectors/torch/operator_marks.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/driver.h"
#include "shim/find_text.h"
#include "shim/hooks.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

#define FLUSH_EVERY_MS 1000u

/* The driver opened the agent, or the mode was decided otherwise; inherited by children. */
static _Atomic bool was_injected;

/*
 * ---- reports on the source of events -----------------------------------------------------------
 */

static void send_mode(enum device_mode mode, const char *reason)
{
	struct event event = {.id = EVENT_DEVICE_MODE, .device_mode = {.mode = mode}};

	if (*reason)
		event.device_mode.reason = torsh_label(reason, strlen(reason));
	torsh_cuda_send(&event);
}

/* Continue without CUPTI: with times, or without them if another tool measures. */
static void do_without(const char *reason, bool may_mark)
{
	static const char *const notes[] = {
		[DEVICE_HOST_ONLY] = "cuda: of kernels and copies only the calls are recorded: ",
		[DEVICE_BY_EVENTS] =
			"cuda: times of kernels and copies are those of events around the calls: ",
	};
	enum device_mode mode = may_mark ? DEVICE_BY_EVENTS : DEVICE_HOST_ONLY;
	struct text note = torsh_text_map(TEXT_NOTE_BYTES);

	torsh_cuda_memory_watch_driver();
	if (torsh_cuda_watch_driver(reason, may_mark))
		mode = DEVICE_HOST_ONLY;
	torsh_text_put(&note, notes[mode]);
	torsh_text_put(&note, reason);
	torsh_channel_note(&torsh_process->channel, note.bytes);
	torsh_text_unmap(&note);
	send_mode(mode, reason);
	torsh_cuda_counters_begin(reason);
}

/* CUPTI's name of a result. */
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

/* ---- start ----------------------------------------------------------------------------------- */

/* NVIDIA's tools, which measure times themselves: the agent must not interfere. */
static bool is_measuring_tool(const char *name)
{
	return torsh_find_text(name, "nsys") || torsh_find_text(name, "Nsight") ||
	       torsh_find_text(name, "nsight");
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
 * The owner of the callbacks has the records too: registering for them would take them away.
 * Returns 0; otherwise the mode without them has been chosen.
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
		result = torsh_cupti.Subscribe_v2(subscriber, torsh_cuda_called_back, NULL,
						  &parameters);
	else
		result = torsh_cupti.Subscribe(subscriber, torsh_cuda_called_back, NULL);
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
	static const int kinds[] = {CUPTI_KIND_KERNEL, CUPTI_KIND_COPY, CUPTI_KIND_PEER_COPY,
				    CUPTI_KIND_MEMSET};
	/* Details of these activities: optional, some versions lack some. */
	static const int further[] = {CUPTI_KIND_DEVICE, CUPTI_KIND_CONTEXT, CUPTI_KIND_STREAM,
				      CUPTI_KIND_WAIT, CUPTI_KIND_OVERHEAD};
	int result = torsh_cupti.ActivityRegisterCallbacks(torsh_cuda_request_buffer,
							   torsh_cuda_complete_buffer);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !result; i++)
		result = enable(kinds[i]);
	for (size_t i = 0; i < sizeof(further) / sizeof(*further) && !result; i++)
		enable(further[i]);
	return result;
}

static void disable_records(void)
{
	uint64_t kinds = atomic_exchange_explicit(&torsh_cuda_own_kinds, 0, memory_order_relaxed);

	for (int kind = 0; kinds; kind++, kinds >>= 1)
		if (kinds & 1)
			torsh_cupti.ActivityDisable(kind);
}

/* Returns 0; otherwise the fallback is chosen and reported. */
static int find_cupti(void)
{
	int result = torsh_cupti_open();

	if (result == -ENOENT) {
		do_without("there is no libcupti", 1);
		return -ENOENT;
	}
	if (result || torsh_cupti.GetVersion(&torsh_cuda_version) ||
	    torsh_cuda_version < CUPTI_VERSION_MIN) {
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
	if (!torsh_cuda_state_make()) {
		torsh_cupti.Unsubscribe(subscriber);
		do_without("there is no memory", 0);
		return;
	}
	torsh_cuda_state_attach(true);
	torsh_cuda_clock_read(1);
	result = enable_records();
	if (result) {
		torsh_cuda_state_attach(false);
		disable_records();
		torsh_cupti.Unsubscribe(subscriber);
		do_without_refused(result);
		return;
	}
	atomic_store_explicit(&torsh_driver_watch, DRIVER_UNWATCHED, memory_order_relaxed);
	torsh_cuda_subscribed(subscriber);
	torsh_cuda_memory_info_begin();
	torsh_cuda_watch_calls();
	torsh_cuda_counters_begin(NULL);
	torsh_cuda_flusher_start();
	if (torsh_cupti.ActivityFlushPeriod)
		torsh_cupti.ActivityFlushPeriod(FLUSH_EVERY_MS);
	send_mode(DEVICE_BY_CUPTI, "");
}

static bool is_wanted(void)
{
	return torsh_config.activities & ACTIVITY_CUDA &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	       torsh_process->pid;
}

/* The driver opened the agent before it was armed: the first call after that attaches it. */
static bool was_opened_dormant;

static bool waits_to_be_armed(void)
{
	return torsh_config.activities & ACTIVITY_CUDA && torsh_agent_is_dormant();
}

static bool is_of_another_tool(const char *path)
{
	return path && *path && strcmp(path, torsh_agent_path());
}

/* In CUDA's own images this leads to CUPTI, which may be free or not. */
static bool is_measured_by_nvtx(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");

	return is_of_another_tool(path) && !torsh_find_text(path, "libcupti");
}

/*
 * Why the agent stays passive, in words; NULL: no other tool was started to measure this process.
 */
static const char *other_tool(void)
{
	if (is_of_another_tool(getenv(TORSH_CUDA_INJECTION)))
		return "another tool's path is in " TORSH_CUDA_INJECTION;
	if (getenv("NSYS_PROFILING_SESSION_ID") || torsh_objects_has("ToolsInjection"))
		return "Nsight Systems measures this process";
	if (is_measured_by_nvtx())
		return "another tool's path is in NVTX_INJECTION64_PATH";
	return NULL;
}

bool torsh_cuda_may_call(void)
{
	if (torsh_agent_is_borrowed() || torsh_cuda_memory_info_is_querying)
		return false;
	if (torsh_cuda_is_live())
		return !torsh_cuda_is_ending() && !torsh_cuda_is_in_call();
	return torsh_cuda_may_query();
}

bool torsh_cuda_may_call_at_call(void)
{
	if (torsh_agent_is_borrowed() || torsh_cuda_memory_info_is_querying)
		return false;
	return torsh_cuda_is_live() ? !torsh_cuda_is_ending() : torsh_cuda_may_query_at_call();
}

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	if (torsh_cuda_may_call())
		torsh_cuda_memory_info_exiting();
	torsh_cuda_exiting();
}

void torsh_cuda_injected(void)
{
	struct producer *producer;
	int saved = errno;

	torsh_agent_start();
	was_opened_dormant = waits_to_be_armed();
	if (!is_wanted() || atomic_exchange_explicit(&was_injected, true, memory_order_acq_rel))
		return;
	torsh_agent_keep_on();
	/*
	 * CUPTI's allocations at its start are not the program's; the agent's producer is created
	 * here.
	 */
	producer = torsh_producer_enter();
	if (producer)
		torsh_producer_leave(producer);
	if (other_tool())
		do_without(other_tool(), 0);
	else
		attach();
	/* Runs before handlers that were registered earlier: the driver is still there then. */
	on_exit(at_exit, NULL);
	errno = saved;
}

void torsh_cuda_before_client(void)
{
	static _Thread_local bool is_inside;

	/* CUPTI may start the driver, which opens the agent, which calls CUPTI. */
	if (is_inside)
		return;
	is_inside = true;
	torsh_cuda_injected();
	is_inside = false;
}

bool torsh_cuda_interposes_driver(void)
{
	torsh_agent_start();
	return is_wanted() || waits_to_be_armed();
}

void torsh_cuda_first_work(void)
{
	torsh_agent_start();
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_STARTING ||
	    waits_to_be_armed())
		return;
	if (!is_wanted()) {
		atomic_store_explicit(&torsh_driver_watch, DRIVER_UNWATCHED, memory_order_relaxed);
		return;
	}
	if (atomic_exchange_explicit(&was_injected, true, memory_order_acq_rel))
		return;
	torsh_agent_keep_on();
	if (other_tool())
		do_without(other_tool(), 0);
	else if (was_opened_dormant)
		attach();
	else
		do_without(
			"the driver did not open the agent, which is set in " TORSH_CUDA_INJECTION,
			1);
	on_exit(at_exit, NULL);
}

/* ---- exit ------------------------------------------------------------------------------------ */

/* The driver did not open the agent, though the program used CUDA, or would have. */
static void send_why_not_injected(void)
{
	if (!is_wanted() || torsh_agent_is_borrowed() ||
	    atomic_exchange_explicit(&was_injected, true, memory_order_acq_rel))
		return;
	if (is_of_another_tool(getenv(TORSH_CUDA_INJECTION)) && torsh_objects_has("/libcuda.so"))
		do_without(other_tool(), 0);
	else if (torsh_objects_has("/libcudart.so"))
		/*
		 * Not noted in every report: many programs are built with CUDA and run without it.
		 */
		send_mode(DEVICE_HOST_ONLY,
			  "CUDA's runtime is loaded, but no driver started in this process");
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
	send_why_not_injected();
	torsh_cuda_end_marks();
	/* Once: a handler that was registered early may run after the driver's end. */
	if (!torsh_cuda_is_live() || torsh_agent_is_borrowed() || torsh_cuda_state_end())
		return;
	torsh_cuda_counters_end();
	torsh_cuda_flush(1);
	torsh_cuda_counters_check_records(
		atomic_load_explicit(&torsh_cuda_losses.records, memory_order_relaxed));
}

void torsh_cuda_executing(void)
{
	if (torsh_cuda_is_live() && !torsh_agent_is_borrowed())
		torsh_cuda_flush(0);
}
