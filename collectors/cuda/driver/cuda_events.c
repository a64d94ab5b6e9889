/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device events without CUPTI: each launching driver call passes a wrapper
 * (shim/cuda/driver_wrappers.c), and events are recorded in its stream before and after it
 * (collectors/device/device_cuda.c). Later calls poll them and never wait. A launch that is
 * captured into a graph does no work and has no events; the graph's own launch has one pair.
 * Without events, or if another tool measures, only the host's side is recorded.
 */
#include "collectors/cuda/driver/cuda_events.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/callbacks.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/cuda/driver/cuda_events_parts.h"
#include "collectors/cuda/driver/cuda_launches.h"
#include "collectors/cuda/memory/cuda_memory_driver.h"
#include "collectors/cuda/memory/cuda_memory_events.h"
#include "collectors/cuda/memory/cuda_memory_info.h"
#include "collectors/device/device_cuda.h"
#include "collectors/device/devices.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/sys.h"

#define PAIRS_MAX 65536u /* pairs that were not reached yet */
#define RESOLUTION_NS 500u /* cuEventElapsedTime: "a resolution of around 0.5 microseconds" */

static const struct device_ops *const row = &torsh_device_cuda;

/*
 * The function that the thread is in, by its frame (torsh_producer_holder): one of the agent that
 * calls the driver, or a call of the program, in which the driver's inner calls are not recorded. A
 * signal handler that interrupts it finds it set, and records nothing; if it jumps out, the next
 * call of the thread clears it. 0: none.
 */
static _Thread_local uint64_t holder;
static _Thread_local bool has_returned; /* the driver's function of that call has returned */

/* The thread's current launch, as a pair without events, for launches that get none. */
static _Thread_local struct device_pair untimed;

static bool is_on(void)
{
	return torsh_cuda_watch &&
	       atomic_load_explicit(&torsh_cuda_watch->is_on, memory_order_acquire);
}

/*
 * A function further out than the holder has returned; or a handler on another stack calls it, and
 * then the holder's call is dropped.
 */
static bool is_inside(const void *frame)
{
	return holder && (uintptr_t)frame <= holder >> 16 &&
	       !torsh_producer_is_abandoned(holder, frame);
}

static bool is_recorded(const void *frame)
{
	return is_on() && holder == torsh_producer_holder(frame);
}

static void send_mode(enum device_mode mode, uint32_t reason)
{
	torsh_cuda_send(&(struct event){.id = EVENT_DEVICE_MODE,
					.device_mode = {.mode = mode, .reason = reason}});
}

/* ---- start ----------------------------------------------------------------------------------- */

int torsh_cuda_watch_driver(const char *reason, bool has_marks)
{
	int result = torsh_driver_open();

	if (!torsh_cuda_watch) {
		struct cuda_watch *made = torsh_sys_own_pages(sizeof(*made));

		if (!made)
			return -ENOMEM;
		torsh_cuda_watch = made;
	}
	if (result)
		return result;
	torsh_driver_keep();
	atomic_store_explicit(&torsh_cuda_watch->no_marks_reason, torsh_cuda_label(reason),
			      memory_order_relaxed);
	atomic_store_explicit(&torsh_cuda_watch->has_marks, has_marks != 0, memory_order_relaxed);
	atomic_store_explicit(&torsh_cuda_watch->is_on, 1, memory_order_release);
	atomic_store_explicit(&torsh_driver_watch, DRIVER_WATCHED, memory_order_relaxed);
	return 0;
}

/* The driver refuses events: from here on only the host's side is recorded. */
static void give_up_marks(void)
{
	const char *problem = torsh_device_cuda_problem();
	char buffer[128];
	struct text reason = TEXT_IN(buffer);
	uint32_t label;

	if (!atomic_exchange_explicit(&torsh_cuda_watch->has_marks, 0, memory_order_relaxed))
		return;
	torsh_text_put(&reason, "the driver's events can't be used: ");
	torsh_text_put(&reason, problem ? problem : "unknown reason");
	label = torsh_cuda_label(buffer);
	atomic_store_explicit(&torsh_cuda_watch->no_marks_reason, label, memory_order_relaxed);
	send_mode(DEVICE_HOST_ONLY, label);
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool is_captured(void *stream)
{
	int status = 0;

	/*
	 * The default stream is refused while another stream that it would wait for is captured: no
	 * work can be submitted to it.
	 */
	return torsh_driver.cuStreamIsCapturing(stream, &status) || status;
}

/* Returns 0, -ENOSPC, or the error of record. */
static int begin_pair(struct driver_work *work)
{
	struct device_pair *pair;
	int result;

	if (atomic_load_explicit(&torsh_cuda_watch->n_pending, memory_order_relaxed) >= PAIRS_MAX ||
	    !(pair = torsh_cuda_take_pair()))
		return -ENOSPC;
	result = row->record(work->stream, NULL, &pair->begin, NULL);
	if (result)
		torsh_cuda_give_pair(pair);
	else
		work->pair = pair;
	return result;
}

static int prepare(struct driver_work *work)
{
	struct quiet quiet = enter_driver();
	int result = 0;

	work->correlation =
		atomic_fetch_add_explicit(&torsh_cuda_watch->correlation, 1, memory_order_relaxed) +
		1;
	work->is_captured = is_captured(work->stream);
	if (!work->is_captured &&
	    atomic_load_explicit(&torsh_cuda_watch->has_marks, memory_order_relaxed))
		result = begin_pair(work);
	leave_driver(&quiet);
	return result;
}

/*
 * A handler jumped out of the thread's last call: its end is unknown, and the rest of it is not
 * recorded.
 */
static __attribute__((noinline)) void mend(void)
{
	struct device_pair *pair = untimed.work.pair;

	untimed.work.pair = NULL;
	if (pair)
		torsh_cuda_give_pair(pair);
	torsh_count(COUNTER_events_abandoned);
}

static void hold_thread(const void *frame)
{
	uint64_t old = holder;

	holder = torsh_producer_holder(frame);
	has_returned = false;
	/* A signal handler from here on finds the thread inside. */
	atomic_signal_fence(memory_order_seq_cst);
	if (old)
		mend();
}

bool torsh_cuda_enter_call(const void *frame)
{
	if (torsh_cuda_memory_info_is_querying || is_inside(frame))
		return false;
	if (atomic_load_explicit(&torsh_driver_watch, memory_order_relaxed) == DRIVER_UNDECIDED)
		torsh_callbacks.device_used();
	if (!is_on() || torsh_agent_is_borrowed())
		return false;
	hold_thread(frame);
	return true;
}

void torsh_cuda_leave_call(void)
{
	holder = 0;
}

bool torsh_cuda_call_returned(const void *frame)
{
	has_returned = true;
	return is_recorded(frame);
}

struct driver_work *torsh_cuda_work(const void *frame)
{
	int saved = errno;
	bool is_recorded = torsh_cuda_enter_call(frame);

	errno = saved;
	if (!is_recorded)
		return NULL;
	untimed.work = (struct driver_work){0};
	return &untimed.work;
}

void torsh_cuda_launching(struct driver_work *work)
{
	int saved = errno;

	work->label = torsh_cuda_label(work->api);
	work->problem = prepare(work);
	if (work->problem == -EIO)
		give_up_marks();
	errno = saved;
	work->begin_ns = torsh_cuda_monotonic_ns();
}

/* ---- after a call ---------------------------------------------------------------------------- */

/*
 * None of these is inlined: the stack space of one is released before another runs, and before the
 * call is sent.
 */

/* Returns the pair of events around the work in progress; NULL: none. */
static __attribute__((noinline)) struct device_pair *end_pair(struct driver_work *work, int result)
{
	struct device_pair *pair = work->pair;

	work->pair = NULL;
	if (result || row->record(work->stream, NULL, &pair->end, NULL)) {
		torsh_cuda_give_pair(pair);
		return NULL;
	}
	pair->work = *work;
	pair->location = torsh_device_cuda_location(pair->begin, work->stream);
	return pair;
}

static __attribute__((noinline)) uint32_t reason_without_times(int problem)
{
	if (problem == -ENOSPC) {
		torsh_cuda_lose(&torsh_cuda_losses.without_room, 1);
		return torsh_cuda_label("too many launches were under way");
	}
	if (atomic_load_explicit(&torsh_cuda_watch->has_marks, memory_order_relaxed))
		return torsh_cuda_label("the driver took no event for its stream");
	return atomic_load_explicit(&torsh_cuda_watch->no_marks_reason, memory_order_relaxed);
}

static void finish_call(struct driver_work *work, int result)
{
	struct device_pair *timed = NULL;
	struct quiet quiet;

	if (!work->pair && (result || work->is_captured))
		return;
	quiet = enter_driver();
	if (work->pair)
		timed = end_pair(work, result);
	if (!result)
		torsh_cuda_describe(timed ? timed : &untimed);
	leave_driver(&quiet);
	if (timed)
		torsh_cuda_add_pending(timed);
	else if (!result)
		torsh_cuda_send_untimed(&untimed, reason_without_times(work->problem));
}

void torsh_cuda_launched(struct driver_work *work, int result, const void *frame)
{
	int saved = errno;

	if (is_recorded(frame)) {
		work->end_ns = torsh_cuda_monotonic_ns();
		torsh_cuda_send_launch(work, result, frame);
		finish_call(work, result);
		torsh_cuda_poll_marks(work->end_ns);
	}
	holder = 0;
	errno = saved;
}

/* ---- the end of a context -------------------------------------------------------------------- */

static bool is_ending(void)
{
	return atomic_load_explicit(&torsh_cuda_watch->is_ending, memory_order_relaxed) != 0;
}

void torsh_cuda_context_ending(struct driver_ending *ending)
{
	const void *frame = __builtin_frame_address(0);
	int saved = errno;

	if (is_on() && !is_inside(frame) && !torsh_agent_is_borrowed() && !is_ending()) {
		struct quiet quiet;

		hold_thread(frame);
		quiet = enter_driver();
		ending->number = torsh_device_cuda_number(ending->context, ending->device);
		leave_driver(&quiet);
		while (!torsh_cuda_take_poll())
			TORSH_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		torsh_cuda_poll_all();
		torsh_device_cuda_forget(ending->context, ending->device);
		torsh_cuda_give_poll();
		holder = 0;
	}
	errno = saved;
}

/*
 * Recorded afterwards: a call that fails, or the release of a context with other references, ends
 * nothing.
 */
void torsh_cuda_context_ended(const struct driver_ending *ending, int result)
{
	int saved = errno;

	if (ending->number && !result && is_on() && torsh_config.profile_memory &&
	    !(ending->is_release && torsh_device_cuda_is_active(ending->device)))
		torsh_cuda_memory_context_ends(ending->number);
	errno = saved;
}

/* ---- exit ------------------------------------------------------------------------------------ */

static void send_figures(void)
{
	struct device_clock clock = torsh_device_cuda_clock();

	torsh_cuda_send(&(struct event){
		.id = EVENT_DEVICE_LOSS,
		.device_loss =
			{
				.records = atomic_load_explicit(&torsh_cuda_losses.records,
								memory_order_relaxed),
				.without_room = atomic_load_explicit(
					&torsh_cuda_losses.without_room, memory_order_relaxed),
				.invalid = atomic_load_explicit(&torsh_cuda_losses.invalid,
								memory_order_relaxed) +
					   atomic_load_explicit(&torsh_cuda_watch->n_pending,
								memory_order_relaxed),
				.clock_width_ns = clock.width_ns,
				.clock_step_ns = clock.step_ns,
			},
	});
	torsh_cuda_send(&(struct event){
		.id = EVENT_PAIR_TIMING,
		.pair_timing =
			{
				.pairs = atomic_load_explicit(&torsh_cuda_watch->n_timed,
							      memory_order_relaxed),
				.resolution_ns = RESOLUTION_NS,
				.floor_ns = clock.floor_ns,
			},
	});
}

bool torsh_cuda_may_query(void)
{
	return is_on() && (has_returned || !is_inside(__builtin_frame_address(0))) &&
	       !is_ending() &&
	       atomic_load_explicit(&torsh_cuda_watch->has_marks, memory_order_relaxed);
}

bool torsh_cuda_may_query_at_call(void)
{
	return is_on() && !is_ending() &&
	       atomic_load_explicit(&torsh_cuda_watch->has_marks, memory_order_relaxed);
}

void torsh_cuda_end_marks(void)
{
	const void *frame = __builtin_frame_address(0);

	if (!is_on() || is_inside(frame) || torsh_agent_is_borrowed() ||
	    atomic_exchange_explicit(&torsh_cuda_watch->is_ending, 1, memory_order_relaxed))
		return;
	hold_thread(frame);
	/* Another thread that holds it may be stopped for ever. */
	if (torsh_cuda_take_poll())
		torsh_cuda_poll_all();
	send_figures();
	torsh_cuda_send_unrecorded();
	holder = 0;
}
