/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls about memory as the driver's entry points see them (shim/driver_memory.def), where there is no CUPTI. The runtime's
 * are the driver's calls that it makes. A call that the driver makes for itself, of the program's or the agent's, is none.
 */
#include <errno.h>
#include <string.h>

#include "collectors/cuda_memory.h"
#include "collectors/device_cuda.h"
#include "shim/driver.h"
#include "shim/hooks.h"

static uint8_t numbers[N_DRIVER_MEMORY_CALLS];

void torsh_cuda_memory_watch_driver(void)
{
	static const char *const names[N_DRIVER_MEMORY_CALLS] = {
#define MEMORY(name, ...) [DRIVER_##name] = #name,
#define MEMORY_IN_STREAM MEMORY
#include "shim/driver_memory.def"
#undef MEMORY
#undef MEMORY_IN_STREAM
	};

	for (size_t i = 0; i < N_DRIVER_MEMORY_CALLS; i++)
		numbers[i] = (uint8_t)torsh_cuda_memory_find(names[i], strlen(names[i]));
}

static struct cuda_memory_call seen(const struct driver_memory_use *use)
{
	return (struct cuda_memory_call){.parameters = use->parameters, .context = use->context, .device = use->device};
}

static void place(struct driver_memory_use *use)
{
	void *outer = torsh_heap_enter_allocator();
	struct device_place here;

	use->context = 0;
	use->device = DEVICE_NOT_KNOWN;
	if (!torsh_device_cuda_here(&here)) {
		use->context = here.context;
		use->device = here.device;
	}
	torsh_heap_leave_allocator(outer);
}

int torsh_cuda_memory_calling(struct driver_memory_use *use)
{
	struct cuda_memory_call begun;
	int saved = errno, is_seen = torsh_cuda_enter_call();

	/* Numbers are there as soon as calls are watched. */
	if (is_seen && numbers[use->call]) {
		place(use);
		begun = seen(use);
		torsh_cuda_memory_begins(numbers[use->call], &begun);
	} else if (is_seen) {
		torsh_cuda_leave_call();
		is_seen = 0;
	}
	errno = saved;
	return is_seen;
}

void torsh_cuda_memory_called(struct driver_memory_use *use, int result, const void *frame)
{
	struct cuda_memory_call ended = seen(use);
	int saved = errno;

	if (torsh_cuda_leave_call())
		torsh_cuda_memory_ends(numbers[use->call], &ended, result, frame);
	errno = saved;
}
