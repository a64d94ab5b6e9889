/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_modules.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/memory/cuda_memory_info.h"
#include "shim/cuda/cuda_memory.h"

/* Begins and ends of calls about memory, of all threads. Relaxed: the driver orders the calls. */
static _Atomic uint64_t n_changes;

/* The outermost call in progress on the thread that loads code. */
static _Thread_local struct {
	uint32_t depth; /* the driver may load a library by loading modules */
	uint32_t device;
	bool is_measured;
	uint64_t free_bytes, changes;
	struct event_device_room info; /* the last answer: the stack may be small */
} loading;

void torsh_cuda_modules_see_change(void)
{
	atomic_fetch_add_explicit(&n_changes, 1, memory_order_relaxed);
}

void torsh_cuda_modules_begins(uint32_t device)
{
	if (loading.depth++)
		return;
	loading.device = device;
	loading.changes = atomic_load_explicit(&n_changes, memory_order_relaxed);
	loading.info = (struct event_device_room){0};
	loading.is_measured = !torsh_cuda_memory_info_query_at_call(device, &loading.info);
	loading.free_bytes = loading.info.free_bytes;
}

/* Returns what the call took. *is_measured: it is known, and no other thread changed it. */
static __attribute__((noinline)) uint64_t took(bool *is_measured)
{
	loading.info = (struct event_device_room){0};
	*is_measured = loading.is_measured &&
		       !torsh_cuda_memory_info_query_at_call(loading.device, &loading.info) &&
		       loading.changes == atomic_load_explicit(&n_changes, memory_order_relaxed) &&
		       loading.info.free_bytes <= loading.free_bytes;
	return *is_measured ? loading.free_bytes - loading.info.free_bytes : 0;
}

/* Not inlined: while the driver is queried no event is on the stack, which may be small. */
static __attribute__((noinline)) void send_load(uint32_t api, const struct cuda_memory_call *call,
						uint64_t bytes, bool is_measured, const void *frame)
{
	const struct cuda_module *loaded = call->parameters;
	struct event event = {.id = EVENT_DEVICE_CODE,
			      .device_code = {.api = api,
					      .handle = *loaded->out,
					      .bytes = bytes,
					      .is_measured = is_measured,
					      .device = loading.device,
					      .context = call->context}};

	torsh_producer_send(&event, torsh_config.with_stack ? frame : NULL);
}

void torsh_cuda_modules_ends(uint32_t api, const struct cuda_memory_call *call, int result,
			     const void *frame)
{
	const struct cuda_module *loaded = call->parameters;
	bool is_measured;
	uint64_t bytes;

	if (!loading.depth || --loading.depth)
		return;
	if (result || !loaded->out)
		return;
	bytes = took(&is_measured);
	torsh_cuda_memory_info_see(loading.device, 0);
	send_load(api, call, bytes, is_measured, frame);
}

void torsh_cuda_modules_unloaded(uint32_t api, const struct cuda_memory_call *call, uint64_t handle)
{
	torsh_cuda_send(&(struct event){.id = EVENT_DEVICE_CODE,
					.device_code = {.api = api,
							.is_unload = 1,
							.handle = handle,
							.context = call->context,
							.device = call->device}});
}
