/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The row of PyTorch's PrivateUse1 accelerator, through its registered ProfilerStubs. It has one
 * stream, the current one.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/event.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/device/devices.h"
#include "shim/sys.h"
#include "shim/torch/privateuse1.h"

#define EVENTS_A_TIME 256u

struct accelerator_event {
	struct privateuse1_event handle;
	int device;
	struct accelerator_event *next;
};

static struct cuda_lock lock; /* guards blanks */
static struct accelerator_event *blanks;

static bool is_enabled(void)
{
	return torsh_privateuse1_stubs() != NULL;
}

static struct accelerator_event *take_blank(void)
{
	struct accelerator_event *event;

	torsh_cuda_lock(&lock);
	if (!blanks) {
		event = torsh_sys_pages(EVENTS_A_TIME * sizeof(*event));
		for (uint32_t i = 0; event && i < EVENTS_A_TIME; i++) {
			event[i].next = blanks;
			blanks = &event[i];
		}
	}
	event = blanks;
	if (event)
		blanks = event->next;
	torsh_cuda_unlock(&lock);
	return event;
}

static int record(void *stream, int *device, void **event, int64_t *cpu_ns)
{
	const void *stubs = torsh_privateuse1_stubs();
	struct accelerator_event *mark = *event;
	int64_t runtimes_ns; /* on the runtime's clock */

	(void)stream;
	if (!stubs)
		return -ENODEV;
	if (!mark)
		mark = take_blank();
	if (!mark)
		return -ENOMEM;
	*event = mark;
	if (cpu_ns)
		*cpu_ns = (int64_t)torsh_cuda_monotonic_ns();
	torsh_privateuse1_record(stubs, &mark->device, &mark->handle, &runtimes_ns);
	if (device)
		*device = mark->device;
	return mark->handle.object ? 0 : -EIO;
}

static int elapsed(void *from, void *to, double *us)
{
	const void *stubs = torsh_privateuse1_stubs();
	const struct accelerator_event *a = from, *b = to;

	if (!stubs || a->device != b->device)
		return -ENODEV;
	*us = torsh_privateuse1_elapsed(stubs, &a->handle, &b->handle);
	return 0;
}

static int synchronize(void)
{
	const void *stubs = torsh_privateuse1_stubs();

	if (!stubs)
		return -ENODEV;
	torsh_privateuse1_synchronize(stubs);
	return 0;
}

static int on_each_device(void (*op)(int device, void *context), void *context)
{
	const void *stubs = torsh_privateuse1_stubs();

	if (!stubs)
		return -ENODEV;
	torsh_privateuse1_on_each_device(stubs, op, context);
	return 0;
}

static void mark(const char *name)
{
	const void *stubs = torsh_privateuse1_stubs();

	if (stubs)
		torsh_privateuse1_mark(stubs, name);
}

static void range_push(const char *name)
{
	const void *stubs = torsh_privateuse1_stubs();

	if (stubs)
		torsh_privateuse1_range_push(stubs, name);
}

static void range_pop(void)
{
	const void *stubs = torsh_privateuse1_stubs();

	if (stubs)
		torsh_privateuse1_range_pop(stubs);
}

const struct device_ops torsh_device_privateuse1 = {
	.name = "privateuse1",
	.enabled = is_enabled,
	.record = record,
	.elapsed = elapsed,
	.may_wait = 1,
	.synchronize = synchronize,
	.on_each_device = on_each_device,
	.mark = mark,
	.range_push = range_push,
	.range_pop = range_pop,
};
