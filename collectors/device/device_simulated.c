/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A device that is the host: a mark is reached when it is recorded. For the interface test, and the
 * example in collectors/device/DEVICES.md; it is enabled in no process.
 */
#include "agent/wire/event.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/device/devices.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define MARKS_MAX 1024u

static struct mark {
	uint64_t at_ns;
} marks[MARKS_MAX];

static _Atomic uint32_t n_marks;

static bool is_enabled(void)
{
	return false;
}

static int record(void *stream, int *device, void **event, int64_t *cpu_ns)
{
	struct mark *mark = *event;
	uint32_t i;

	(void)stream;
	if (!mark) {
		i = atomic_fetch_add_explicit(&n_marks, 1, memory_order_relaxed);
		if (i >= MARKS_MAX)
			return -ENOSPC;
		mark = &marks[i];
	}
	mark->at_ns = torsh_cuda_monotonic_ns();
	*event = mark;
	if (device)
		*device = 0;
	if (cpu_ns)
		*cpu_ns = (int64_t)mark->at_ns;
	return 0;
}

static int elapsed(void *from, void *to, double *us)
{
	const struct mark *a = from, *b = to;

	*us = (double)(int64_t)(b->at_ns - a->at_ns) / 1000;
	return 0;
}

static int synchronize(void)
{
	return 0;
}

static int on_each_device(void (*op)(int device, void *context), void *context)
{
	op(0, context);
	return 0;
}

const struct device_ops torsh_device_simulated = {
	.name = "simulated",
	.enabled = is_enabled,
	.record = record,
	.elapsed = elapsed,
	.synchronize = synchronize,
	.on_each_device = on_each_device,
};
