/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls about memory, from the driver's wrapped entry points (shim/cuda/driver_memory.def), without
 * CUPTI. The runtime's calls appear as its driver calls. Calls inside of another driver call, the
 * program's or the agent's, are not recorded.
 */
#include "collectors/cuda/memory/cuda_memory_driver.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collectors/cuda/driver/cuda_events.h"
#include "collectors/cuda/memory/cuda_memory_events.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"

static uint8_t numbers[N_DRIVER_MEMORY_CALLS];

void torsh_cuda_memory_watch_driver(void)
{
	static const char *const names[N_DRIVER_MEMORY_CALLS] = {
#define MEMORY(name, ...) [DRIVER_##name] = #name,
#include "shim/cuda/driver_memory.def"
#undef MEMORY
	};

	for (size_t i = 0; i < N_DRIVER_MEMORY_CALLS; i++)
		numbers[i] = (uint8_t)torsh_cuda_memory_find(names[i], strlen(names[i]));
}

/* The call in progress on the thread. */
static _Thread_local struct {
	struct driver_memory_use use;
	struct cuda_memory_call call;
	uint32_t number;
} under_way;

static void locate(void)
{
	void *outer = torsh_heap_enter_allocator();
	struct device_location here;

	if (!torsh_device_cuda_here(&here)) {
		under_way.call.context = here.context;
		under_way.call.device = here.device;
	}
	torsh_heap_leave_allocator(outer);
}

struct driver_memory_use *torsh_cuda_memory_use(enum driver_memory_call call, const void *frame)
{
	int saved = errno;
	bool is_seen = torsh_cuda_enter_call(frame);

	/* The numbers exist as soon as calls are watched. */
	if (is_seen && !numbers[call]) {
		torsh_cuda_leave_call();
		is_seen = false;
	}
	errno = saved;
	if (!is_seen)
		return NULL;
	under_way.number = numbers[call];
	under_way.call =
		(struct cuda_memory_call){.parameters = &under_way.use, .device = DEVICE_NOT_KNOWN};
	return &under_way.use;
}

void torsh_cuda_memory_calling(void)
{
	int saved = errno;

	locate();
	torsh_cuda_memory_begins(under_way.number, &under_way.call);
	errno = saved;
}

void torsh_cuda_memory_called(int result, const void *frame)
{
	int saved = errno;

	if (torsh_cuda_call_returned(frame))
		torsh_cuda_memory_ends(under_way.number, &under_way.call, result, frame);
	torsh_cuda_leave_call();
	errno = saved;
}
