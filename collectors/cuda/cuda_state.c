/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/cuda_state.h"

#include "agent/producer/producer.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "shim/sys.h"

struct cuda_losses torsh_cuda_losses;
_Atomic uint64_t torsh_cuda_own_kinds;
uint32_t torsh_cuda_version;

/* In pages that are zeroed in a forked child, whichever call made it. */
struct live {
	_Atomic uint32_t is_attached;
	_Atomic uint32_t is_ending; /* the last flush has begun */
};

static struct live *live;

bool torsh_cuda_is_live(void)
{
	return live && atomic_load_explicit(&live->is_attached, memory_order_acquire);
}

bool torsh_cuda_is_ending(void)
{
	return live && atomic_load_explicit(&live->is_ending, memory_order_relaxed);
}

bool torsh_cuda_state_make(void)
{
	live = torsh_sys_own_pages(sizeof(*live));
	return live;
}

void torsh_cuda_state_attach(bool is_attached)
{
	atomic_store_explicit(&live->is_attached, is_attached, memory_order_release);
}

bool torsh_cuda_state_end(void)
{
	return atomic_exchange_explicit(&live->is_ending, 1, memory_order_relaxed);
}

void torsh_cuda_send_losses(void)
{
	struct event event = {
		.id = EVENT_DEVICE_LOSS,
		.device_loss =
			{
				.records = atomic_load_explicit(&torsh_cuda_losses.records,
								memory_order_relaxed),
				.dropped = atomic_load_explicit(&torsh_cuda_losses.dropped,
								memory_order_relaxed),
				.without_room = atomic_load_explicit(
					&torsh_cuda_losses.without_room, memory_order_relaxed),
				.invalid = atomic_load_explicit(&torsh_cuda_losses.invalid,
								memory_order_relaxed),
				.flushes_cut = atomic_load_explicit(&torsh_cuda_losses.flushes_cut,
								    memory_order_relaxed),
				.buffers_kept = atomic_load_explicit(
					&torsh_cuda_losses.buffers_kept, memory_order_relaxed),
				.is_dropping_unknown =
					atomic_load_explicit(&torsh_cuda_losses.is_dropping_unknown,
							     memory_order_relaxed),
			},
	};

	torsh_cuda_clock_errors(&event.device_loss.clock_width_ns,
				&event.device_loss.clock_step_ns);
	torsh_producer_send(&event, NULL);
}
