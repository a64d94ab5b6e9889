/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The CUDA row of the device table: driver events, through the driver's entry points. */
#include "collectors/device/device_cuda.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/event.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/device/device_cuda_event_slots.h"
#include "collectors/device/devices.h"
#include "shim/cuda/driver.h"
#include "shim/sys.h"

/* proxies of driver events that are allocated at a time */
#define EVENTS_A_TIME 128u
/* the driver returns distances as floats: short ones are exact */
#define COMPARE_EVERY_NS UINT64_C(1000000000)
#define COMPARE_TRIES 3
#define LOOK_NS 50000u /* polling a mark until it is reached */

struct driver_event {
	struct driver_event *next;
	void *handle;
	struct cuda_event_slots *slots; /* NULL: not recorded yet */
	uint32_t generation; /* of the slots when it was created */
};

static struct cuda_lock lock; /* guards the spares of the slots, and blanks */
static struct driver_event *blanks; /* proxies without a driver event */
static struct device_clock clock_errors;

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_valid(const struct driver_event *event)
{
	return event->generation ==
	       atomic_load_explicit(&event->slots->generation, memory_order_relaxed);
}

/* With the lock. */
static struct driver_event *take_blank(void)
{
	struct driver_event *event = blanks;

	if (!event) {
		event = torsh_sys_pages(EVENTS_A_TIME * sizeof(*event));
		for (uint32_t i = 1; event && i < EVENTS_A_TIME; i++) {
			event[i].next = blanks;
			blanks = &event[i];
		}
		return event;
	}
	blanks = event->next;
	return event;
}

static void give_event(struct driver_event *event)
{
	torsh_cuda_lock(&lock);
	event->next = event->slots->spares;
	event->slots->spares = event;
	torsh_cuda_unlock(&lock);
}

/* Not inlined: its stack space is needed only once per mark. */
static __attribute__((noinline)) int make_event(struct cuda_event_slots *slots, void **handle)
{
	struct cuda_visit visit;
	int result = torsh_cuda_visit(&visit,
				      atomic_load_explicit(&slots->handle, memory_order_relaxed));

	if (result)
		return result;
	result = torsh_cuda_check(torsh_driver.cuEventCreate(handle, 0));
	torsh_cuda_visit_end(&visit);
	return result;
}

static struct driver_event *take_event(struct cuda_event_slots *slots)
{
	struct driver_event *event;

	torsh_cuda_lock(&lock);
	event = slots->spares;
	if (event)
		slots->spares = event->next;
	else
		event = take_blank();
	torsh_cuda_unlock(&lock);
	if (!event)
		return NULL;
	if (event->slots && is_valid(event))
		return event;
	event->slots = slots;
	event->generation = atomic_load_explicit(&slots->generation, memory_order_relaxed);
	if (!make_event(slots, &event->handle))
		return event;
	event->generation--;
	give_event(event);
	return NULL;
}

/* ---- the interface --------------------------------------------------------------------------- */

static bool is_enabled(void)
{
	return torsh_driver.cuEventRecord || !torsh_driver_open();
}

static int record(void *stream, int *device, void **event, int64_t *cpu_ns)
{
	struct cuda_event_slots *slots = torsh_cuda_event_slots_of(stream);
	struct driver_event *mark = *event;

	if (!slots)
		return -ENODEV;
	if (mark && (mark->slots != slots || !is_valid(mark))) {
		give_event(mark);
		mark = NULL;
	}
	if (!mark)
		mark = take_event(slots);
	*event = mark;
	if (!mark)
		return -EIO;
	if (device)
		*device = slots->device;
	if (cpu_ns)
		*cpu_ns = (int64_t)torsh_cuda_monotonic_ns();
	return torsh_cuda_check(torsh_driver.cuEventRecord(mark->handle, stream));
}

static int query(void *handle)
{
	int result = torsh_driver.cuEventQuery(handle);

	return result == DRIVER_NOT_READY ? -EAGAIN : torsh_cuda_check(result);
}

/* In the events' context. */
static int distance(void *from, void *to, double *us)
{
	int result = query(to);
	float ms;

	if (!result)
		result = query(from);
	if (!result)
		result = torsh_cuda_check(torsh_driver.cuEventElapsedTime(&ms, from, to));
	if (!result)
		*us = (double)ms * 1000;
	return result;
}

static int elapsed(void *from, void *to, double *us)
{
	struct driver_event *a = from, *b = to;
	struct cuda_visit visit;
	int result;

	if (a->slots != b->slots || !is_valid(a) || !is_valid(b))
		return -ENODEV;
	result = torsh_cuda_visit(&visit,
				  atomic_load_explicit(&a->slots->handle, memory_order_relaxed));
	if (result)
		return result;
	result = distance(a->handle, b->handle, us);
	torsh_cuda_visit_end(&visit);
	return result;
}

static int synchronize(void)
{
	return torsh_cuda_check(torsh_driver.cuCtxSynchronize());
}

static int on_each_device(void (*op)(int device, void *context), void *context)
{
	int n, result = torsh_cuda_check(torsh_driver.cuDeviceGetCount(&n));

	for (int i = 0; i < n && !result; i++)
		op(i, context);
	return result;
}

const struct device_ops torsh_device_cuda = {
	.name = "cuda",
	.enabled = is_enabled,
	.record = record,
	.elapsed = elapsed,
	.synchronize = synchronize,
	.on_each_device = on_each_device,
};

struct device_location torsh_device_cuda_location(void *event, void *stream)
{
	const struct driver_event *mark = event;
	uint64_t id = 0;

	if (!mark || (torsh_driver.cuStreamGetId && torsh_driver.cuStreamGetId(stream, &id)))
		id = 0;
	return (struct device_location){
		.device = mark ? (uint32_t)mark->slots->device : 0,
		.context = mark ? mark->slots->id : 0,
		.stream = (uint32_t)id,
	};
}

/* ---- times ----------------------------------------------------------------------------------- */

/* In the slots' context. */
static int prepare(struct cuda_event_slots *slots)
{
	int result = 0;

	if (!slots->stream)
		result = torsh_cuda_check(
			torsh_driver.cuStreamCreate(&slots->stream, DRIVER_STREAM_NON_BLOCKING));
	if (!result && !slots->next.mark)
		result = torsh_cuda_check(torsh_driver.cuEventCreate(&slots->next.mark, 0));
	if (!result && !slots->next.after)
		result = torsh_cuda_check(torsh_driver.cuEventCreate(&slots->next.after, 0));
	return result;
}

/*
 * Record a mark in the agent's own stream, which is reached at once: between the readings before
 * and after it.
 */
static int compare_once(struct cuda_event_slots *slots, uint64_t *width_ns)
{
	struct cuda_comparison *next = &slots->next;
	uint64_t before = torsh_cuda_monotonic_ns(), now;
	int result = torsh_cuda_check(torsh_driver.cuEventRecord(next->mark, slots->stream));

	if (result)
		return result;
	do {
		result = query(next->mark);
		now = torsh_cuda_monotonic_ns();
	} while (result == -EAGAIN && now - before < LOOK_NS);
	*width_ns = now - before;
	next->moment_ns = before + (now - before) / 2;
	return result;
}

static void measure_floor(const struct cuda_event_slots *slots)
{
	double us;

	if (torsh_driver.cuEventRecord(slots->next.after, slots->stream))
		return;
	for (int i = 0; i < COMPARE_TRIES; i++) {
		if (distance(slots->next.mark, slots->next.after, &us))
			continue;
		if (us * 1000 > (double)clock_errors.floor_ns)
			clock_errors.floor_ns = (uint64_t)(us * 1000);
		return;
	}
}

static void measure_step(const struct cuda_event_slots *slots)
{
	int64_t step;
	double us;

	if (!slots->comparison.mark || distance(slots->comparison.mark, slots->next.mark, &us))
		return;
	step = (int64_t)(slots->next.moment_ns - slots->comparison.moment_ns) -
	       (int64_t)(us * 1000);
	step = step < 0 ? -step : step;
	if ((uint64_t)step > clock_errors.step_ns)
		clock_errors.step_ns = (uint64_t)step;
}

/* In the slots' context. Uses the first of several tries that is narrow enough. */
static void compare(struct cuda_event_slots *slots)
{
	struct cuda_comparison old = slots->comparison;
	uint64_t now = torsh_cuda_monotonic_ns(), width_ns = 0;

	if (now < slots->due_ns || prepare(slots))
		return;
	for (int i = 0; i <= COMPARE_TRIES; i++) {
		int result = compare_once(slots, &width_ns);

		/* The first one runs with cold caches. */
		if (i == 0 || result == -EAGAIN)
			continue;
		if (result)
			return;
		measure_floor(slots);
		measure_step(slots);
		slots->comparison = slots->next;
		slots->next = old;
		slots->due_ns = now + COMPARE_EVERY_NS;
		if (width_ns > clock_errors.width_ns)
			clock_errors.width_ns = width_ns;
		return;
	}
}

int torsh_device_cuda_moment(void *event, uint64_t *moment_ns)
{
	struct driver_event *mark = event;
	struct cuda_event_slots *slots = mark->slots;
	struct cuda_visit visit;
	double us;
	int result;

	if (!is_valid(mark))
		return -ENODEV;
	result = torsh_cuda_visit(&visit,
				  atomic_load_explicit(&slots->handle, memory_order_relaxed));
	if (result)
		return result;
	compare(slots);
	result = slots->comparison.mark ? distance(slots->comparison.mark, mark->handle, &us)
					: -EAGAIN;
	torsh_cuda_visit_end(&visit);
	if (!result)
		*moment_ns = slots->comparison.moment_ns + (uint64_t)(int64_t)(us * 1000);
	return result;
}

struct device_clock torsh_device_cuda_clock(void)
{
	return clock_errors;
}
