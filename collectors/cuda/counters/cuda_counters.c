/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters of devices: the driver calls that matter to them, and the reports about them. */
#include "collectors/cuda/counters/cuda_counters.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counter_gate.h"
#include "collectors/cuda/counters/cuda_counter_ranges.h"
#include "collectors/cuda/counters/cuda_counter_samples.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "collectors/cuda/cupti/cuda_shadow.h"
#include "collectors/cuda/cuda_ticks.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"

#define END_AT_MOST_NS UINT64_C(2000000000)

/* The role of a driver call. */
enum call_class {
	CALL_OTHER,
	CALL_LAUNCH,
	CALL_LAUNCH_EX, /* with a struct for the shape */
	CALL_GRAPH,
	CALL_WAITS, /* makes streams wait for the process */
	CALL_CAPTURE_BEGINS,
	CALL_CAPTURE_ENDS,
	CALL_SYNCHRONISES,
};

static uint8_t classes[CUPTI_CALLS_MAX];

/* A call of this thread, from its begin to its end. */
static _Thread_local struct {
	uint32_t depth, n_collectives;
	bool is_measured, is_collective;
} open_call;

/* ---- calls ----------------------------------------------------------------------------------- */

/* Whether name is plain, or another form of it. */
static bool is_form_of(const char *name, const char *plain)
{
	static const char *const suffixes[] = {"", "_v2", "_ptsz", "_v2_ptsz"};
	size_t n = strlen(plain);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (!strncmp(name, plain, n) && !strcmp(name + n, suffixes[i]))
			return true;
	return false;
}

static enum call_class class_of(const char *name)
{
	static const struct {
		const char *name;
		enum call_class class;
	} known[] = {
		{"cuLaunchKernel", CALL_LAUNCH},
		{"cuLaunchCooperativeKernel", CALL_LAUNCH},
		{"cuLaunchKernelEx", CALL_LAUNCH_EX},
		{"cuGraphLaunch", CALL_GRAPH},
		{"cuLaunchHostFunc", CALL_WAITS},
		{"cuStreamAddCallback", CALL_WAITS},
		{"cuStreamWaitValue32", CALL_WAITS},
		{"cuStreamWaitValue64", CALL_WAITS},
		{"cuStreamBatchMemOp", CALL_WAITS},
		{"cuWaitExternalSemaphoresAsync", CALL_WAITS},
		{"cuIpcOpenEventHandle", CALL_WAITS},
		{"cuLaunchCooperativeKernelMultiDevice", CALL_WAITS},
		{"cuStreamBeginCapture", CALL_CAPTURE_BEGINS},
		{"cuStreamBeginCaptureToGraph", CALL_CAPTURE_BEGINS},
		{"cuStreamEndCapture", CALL_CAPTURE_ENDS},
	};

	/* Its later form has the context as a parameter, which need not be the call's. */
	if (!strcmp(name, "cuCtxSynchronize"))
		return CALL_SYNCHRONISES;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (is_form_of(name, known[i].name))
			return known[i].class;
	return CALL_OTHER;
}

bool torsh_cuda_counters_watch(uint32_t id, const char *name)
{
	if (torsh_config.counters.mode == COUNTERS_OFF || id >= CUPTI_CALLS_MAX)
		return false;
	classes[id] = (uint8_t)class_of(name);
	return classes[id] != CALL_OTHER;
}

static struct cupti_launch_config shape_of(const struct cupti_call *call, enum call_class class)
{
	const struct cupti_launch *launch = call->parameters;

	if (class == CALL_LAUNCH_EX)
		return **(const struct cupti_launch_config *const *)call->parameters;
	return (struct cupti_launch_config){
		.grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
		.block = {launch->block[0], launch->block[1], launch->block[2]},
		.shared_bytes = launch->shared_bytes,
	};
}

static void launch_begins(const struct cupti_call *call, enum call_class class)
{
	struct cupti_launch_config shape;

	open_call.is_collective = call->symbol && torsh_counter_is_collective(call->symbol);
	if (open_call.is_collective) {
		torsh_counter_collective_begins(call->context_id);
	} else if (call->symbol && torsh_cuda_counters_are_on()) {
		shape = shape_of(call, class);
		open_call.is_measured = torsh_counter_range_begin(call, &shape);
	}
	if (!open_call.is_measured)
		torsh_counter_gate_enter();
}

static void launch_ends(const struct cupti_call *call)
{
	if (open_call.is_measured)
		torsh_counter_range_end(call);
	else
		torsh_counter_gate_leave();
	if (open_call.is_collective && call->result && *(const int *)call->result)
		torsh_counter_collective_failed(call->context_id);
	open_call.is_measured = open_call.is_collective = false;
}

static void call_begins(const struct cupti_call *call, enum call_class class)
{
	switch (class) {
	case CALL_LAUNCH:
	case CALL_LAUNCH_EX:
		launch_begins(call, class);
		return;
	case CALL_GRAPH:
		/*
		 * Each of its kernels would be a range, but neither its node nor whether it waits
		 * can be determined.
		 */
		COUNTER_COUNT(graphs);
		torsh_counter_graph_begins(call->context_id);
		torsh_counter_gate_enter();
		return;
	case CALL_WAITS:
		torsh_counter_streams_wait();
		return;
	case CALL_CAPTURE_BEGINS:
		torsh_counter_capture_begins();
		return;
	case CALL_SYNCHRONISES:
		open_call.n_collectives = torsh_counter_collectives_of(call->context_id);
		return;
	default:
		return;
	}
}

static void call_ends(const struct cupti_call *call, enum call_class class)
{
	bool is_done = !call->result || !*(const int *)call->result;

	switch (class) {
	case CALL_LAUNCH:
	case CALL_LAUNCH_EX:
		launch_ends(call);
		return;
	case CALL_GRAPH:
		torsh_counter_gate_leave();
		return;
	case CALL_CAPTURE_BEGINS:
		if (!is_done)
			torsh_counter_capture_ended();
		return;
	case CALL_CAPTURE_ENDS:
		torsh_counter_capture_ended();
		return;
	case CALL_SYNCHRONISES:
		if (is_done)
			torsh_counter_collectives_ended(call->context_id, open_call.n_collectives);
		return;
	default:
		return;
	}
}

/* Handles kernels, also after a refusal, so that each launch that entered the gate leaves it. */
static void see_call(const struct cupti_call *call, enum call_class class)
{
	/* Only the outermost of nested calls. */
	if (call->site == CUPTI_ENTER) {
		if (!open_call.depth++)
			call_begins(call, class);
	} else if (open_call.depth && !--open_call.depth) {
		call_ends(call, class);
	}
}

void torsh_cuda_counters_call(const struct cupti_call *call, uint32_t id)
{
	enum call_class class = classes[id];

	if (class == CALL_OTHER)
		return;
	if (torsh_config.counters.mode == COUNTERS_OF_OPERATORS)
		see_call(call, class);
	else if (call->site == CUPTI_ENTER && torsh_cuda_counters_are_on())
		torsh_counter_samples_see(call->context, call->context_id);
}

void torsh_cuda_counters_kernel(const struct cupti_kernel *kernel)
{
	/* A kernel of a graph has no launch of its own. */
	if (torsh_config.counters.mode == COUNTERS_OF_OPERATORS && !kernel->graph && kernel->name &&
	    torsh_counter_is_collective(kernel->name))
		torsh_counter_collective_ended(kernel->context);
}

/* ---- start and exit -------------------------------------------------------------------------- */

void torsh_cuda_counters_begin(const char *why_not)
{
	if (torsh_config.counters.mode == COUNTERS_OFF)
		return;
	if (why_not) {
		torsh_counters_send_off(why_not);
		return;
	}
	if (torsh_cupti_profiler_open(torsh_cupti_library) || !torsh_cupti.GetDeviceId) {
		torsh_counters_send_off(
			"this libcupti is older than that of CUDA 12.6, the first that can");
		return;
	}
	torsh_cuda_watch_callback(CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_ENDS);
	torsh_counters_turn(true);
}

/* Close the gate for good, or give up if a launch does not end. */
static int close_gate(void)
{
	uint64_t until_ns = torsh_cuda_monotonic_ns() + END_AT_MOST_NS;

	while (!torsh_counter_gate_close())
		if (torsh_cuda_monotonic_ns() > until_ns)
			return 0;
	return 1;
}

void torsh_cuda_counters_context_ends(const void *context)
{
	if (torsh_config.counters.mode != COUNTERS_OF_OPERATORS || !close_gate())
		return;
	torsh_counter_ranges_forget(context);
	torsh_counter_gate_open();
}

void torsh_cuda_counters_end(void)
{
	if (torsh_config.counters.mode == COUNTERS_OFF)
		return;
	torsh_counters_turn(false);
	if (torsh_config.counters.mode == COUNTERS_OF_TIMELINE) {
		torsh_counter_samples_end();
	} else if (close_gate()) {
		torsh_counter_ranges_end();
		torsh_counter_gate_open();
	}
	torsh_counters_deinitialise();
	torsh_counters_send_losses();
}

void torsh_cuda_counters_check_records(uint64_t n_records)
{
	if (!n_records && atomic_load_explicit(&torsh_counter_losses.samples, memory_order_relaxed))
		torsh_channel_note(
			&torsh_process->channel,
			"counters: no kernel is in this recording: while a device is sampled some versions of "
			"CUPTI hand over no records");
}
