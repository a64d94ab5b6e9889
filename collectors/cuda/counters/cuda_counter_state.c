/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/counters/cuda_counter_state.h"

#include <string.h>

#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "collectors/cuda/counters/cuda_counter_refusal.h"
#include "shim/cuda/cupti_profiler.h"

struct counter_losses torsh_counter_losses;

static _Atomic uint32_t is_on, is_refused, is_initialised;

bool torsh_cuda_counters_are_on(void)
{
	return (int)atomic_load_explicit(&is_on, memory_order_relaxed);
}

void torsh_counters_turn(bool on)
{
	atomic_store_explicit(&is_on, on, memory_order_relaxed);
}

void torsh_counters_send(const struct event *event)
{
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_producer_event(producer, event, NULL);
	torsh_producer_leave(producer);
}

void torsh_counters_send_off(const char *reason)
{
	struct event event = {
		.id = EVENT_COUNTER_MODE,
		.counter_mode =
			{
				.mode = COUNTERS_OFF,
				.reason = torsh_label(reason, strlen(reason)),
				.device = COUNTER_ALL_DEVICES,
			},
	};
	struct text note = torsh_text_map(TEXT_NOTE_BYTES);

	torsh_text_put(&note, "counters: ");
	torsh_text_put(&note, reason);
	torsh_channel_note(&torsh_process->channel, note.bytes);
	torsh_text_unmap(&note);
	torsh_counters_send(&event);
}

void torsh_counters_refuse(const char *what, int result)
{
	struct text reason;

	if (atomic_exchange(&is_refused, 1))
		return;
	reason = torsh_text_map(TEXT_NOTE_BYTES);
	atomic_store_explicit(&is_on, 0, memory_order_relaxed);
	torsh_text_put(&reason, what);
	torsh_text_put(&reason, ": ");
	if (result)
		torsh_counter_refusal(&reason, result, COUNTER_ADMIN_ONLY);
	else
		torsh_text_put(&reason, "CUPTI counted nothing");
	torsh_counters_send_off(reason.bytes);
	torsh_text_unmap(&reason);
}

void torsh_counters_send_losses(void)
{
	struct event event = {.id = EVENT_COUNTER_LOSS};

#define LOSS(name)                \
	event.counter_loss.name = \
		atomic_load_explicit(&torsh_counter_losses.name, memory_order_relaxed);
	COUNTER_LOSSES
#undef LOSS
	torsh_counters_send(&event);
}

int torsh_counters_initialise(void)
{
	struct cupti_profiler profiler = {.n_bytes =
						  CUPTI_PROFILER_BYTES(cupti_profiler, reserved)};
	int result;

	if (is_initialised)
		return 0;
	result = torsh_cupti_profiler.ProfilerInitialize(&profiler);
	if (result) {
		torsh_counters_refuse("nothing is measured", result);
		return -1;
	}
	is_initialised = 1;
	return 0;
}

void torsh_counters_deinitialise(void)
{
	struct cupti_profiler profiler = {.n_bytes =
						  CUPTI_PROFILER_BYTES(cupti_profiler, reserved)};

	if (atomic_exchange(&is_initialised, 0))
		torsh_cupti_profiler.ProfilerDeInitialize(&profiler);
}
