/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The tensor collector: every block that PyTorch's allocators allocate and free. */
#include <errno.h>
#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "shim/hooks.h"
#include "shim/torch/torch_calibration.h"

bool torsh_torch_wants_memory(void)
{
	return torsh_config.activities & ACTIVITY_TORCH && torsh_config.profile_memory &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_relaxed) == AGENT_ON;
}

bool torsh_torch_wants_cpu_memory(void)
{
	return torsh_torch_wants_memory() && !torsh_config.began_late;
}

/*
 * A CPU block came from malloc just before, on this thread, which captured the stack then. Blocks
 * of other devices pass no other hook.
 */
static const void *stack_of(uint32_t device, const void *frame)
{
	if (!torsh_config.with_stack || (device == 0 && torsh_config.activities & ACTIVITY_HEAP))
		return NULL;
	return frame;
}

/* The calibration's tensors are the agent's own. */
static void record(const struct event *event, const void *frame)
{
	int saved = errno;
	struct producer *producer = torsh_torch_wants_memory() && !torsh_torch_is_calibrating
					    ? torsh_producer_enter()
					    : NULL;

	if (producer) {
		torsh_producer_event(producer, event, frame);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

void torsh_torch_memory(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			uint32_t device, const void *frame)
{
	struct event event = {
		.id = EVENT_TENSOR,
		.tensor =
			{
				.address = (uintptr_t)block,
				.bytes = n_bytes < 0 ? -(uint64_t)n_bytes : (uint64_t)n_bytes,
				.is_free = n_bytes < 0,
				.device = device,
				.allocated = allocated,
				.reserved = reserved,
			},
	};

	record(&event, n_bytes < 0 ? NULL : stack_of(device, frame));
}

void torsh_torch_out_of_memory(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			       uint32_t device, const void *frame)
{
	struct event event = {
		.id = EVENT_OUT_OF_MEMORY,
		.out_of_memory =
			{
				.bytes = (uint64_t)n_bytes,
				.device = device,
				.allocated = allocated,
				.reserved = reserved,
			},
	};

	record(&event, torsh_config.with_stack ? frame : NULL);
}
