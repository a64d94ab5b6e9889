/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/device/device_cuda_event_slots.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_slab.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"

/* guards the list, which only grows at its end, and the creation of slots */
static struct cuda_lock lock;
static struct cuda_event_slots *first_slots, **last_slots = &first_slots;
static struct cuda_slab slab;
static uint32_t n_slots;

static _Thread_local int last_problem;

void torsh_cuda_last_error(int result)
{
	last_problem = result;
}

const char *torsh_device_cuda_problem(void)
{
	const char *name = NULL;

	if (!last_problem || torsh_driver.cuGetErrorName(last_problem, &name))
		return NULL;
	return name;
}

/* ---- contexts -------------------------------------------------------------------------------- */

int torsh_cuda_visit(struct cuda_visit *visit, void *context)
{
	void *current = NULL;
	int result = torsh_cuda_check(torsh_driver.cuCtxGetCurrent(&current));

	visit->is_pushed = false;
	visit->mode = DRIVER_CAPTURE_RELAXED;
	if (!result && current != context) {
		result = torsh_cuda_check(torsh_driver.cuCtxPushCurrent_v2(context));
		visit->is_pushed = !result;
	}
	if (!result)
		torsh_driver.cuThreadExchangeStreamCaptureMode(&visit->mode);
	return result;
}

void torsh_cuda_visit_end(struct cuda_visit *visit)
{
	void *context;

	torsh_driver.cuThreadExchangeStreamCaptureMode(&visit->mode);
	if (visit->is_pushed)
		torsh_driver.cuCtxPopCurrent_v2(&context);
}

static int context_of(void *stream, void **context)
{
	int result;

	*context = NULL;
	if (stream && stream != DRIVER_STREAM_LEGACY && stream != DRIVER_STREAM_PER_THREAD &&
	    torsh_driver.cuStreamGetCtx)
		result = torsh_cuda_check(torsh_driver.cuStreamGetCtx(stream, context));
	else
		result = torsh_cuda_check(torsh_driver.cuCtxGetCurrent(context));
	return result || *context ? result : -ENODEV;
}

static struct cuda_event_slots *find_slots(const void *context)
{
	struct cuda_event_slots *slots = first_slots;

	while (slots && atomic_load_explicit(&slots->handle, memory_order_relaxed) != context)
		slots = slots->following;
	return slots;
}

/* With the lock. Slots of a destroyed context, or new ones. */
static struct cuda_event_slots *take_slots(void)
{
	struct cuda_event_slots *slots = find_slots(NULL);

	if (slots)
		return slots;
	slots = torsh_cuda_slab_take(&slab, sizeof(*slots));
	if (!slots)
		return NULL;
	slots->number = ++n_slots;
	*last_slots = slots;
	last_slots = &slots->following;
	return slots;
}

/* Not inlined: its stack space is needed only once per context. */
static __attribute__((noinline)) struct cuda_event_slots *add_slots(void *context)
{
	struct cuda_event_slots *slots = NULL;
	struct cuda_visit visit;
	uint64_t id = 0;
	int device;

	if (torsh_cuda_visit(&visit, context))
		return NULL;
	if (!torsh_cuda_check(torsh_driver.cuCtxGetDevice(&device)) &&
	    (!torsh_driver.cuCtxGetId || !torsh_driver.cuCtxGetId(context, &id))) {
		torsh_cuda_lock(&lock);
		slots = find_slots(context);
		if (!slots)
			slots = take_slots();
		if (slots) {
			slots->device = device;
			slots->id = id ? (uint32_t)id : slots->number;
			atomic_store_explicit(&slots->handle, context, memory_order_relaxed);
		}
		torsh_cuda_unlock(&lock);
	}
	torsh_cuda_visit_end(&visit);
	return slots;
}

static struct cuda_event_slots *find_slots_locked(const void *context)
{
	struct cuda_event_slots *slots;

	torsh_cuda_lock(&lock);
	slots = find_slots(context);
	torsh_cuda_unlock(&lock);
	return slots;
}

struct cuda_event_slots *torsh_cuda_event_slots_of(void *stream)
{
	struct cuda_event_slots *slots;
	void *context;

	if (context_of(stream, &context))
		return NULL;
	slots = find_slots_locked(context);
	return slots ? slots : add_slots(context);
}

/* With the lock. The context's events were destroyed with it, and its address may be reused. */
static void forget_slots(struct cuda_event_slots *slots)
{
	atomic_fetch_add_explicit(&slots->generation, 1, memory_order_relaxed);
	slots->stream = NULL;
	slots->comparison = slots->next = (struct cuda_comparison){0};
	slots->due_ns = 0;
	atomic_store_explicit(&slots->handle, NULL, memory_order_relaxed);
}

void torsh_device_cuda_forget(void *context, int device)
{
	struct cuda_event_slots *slots;

	torsh_cuda_lock(&lock);
	for (slots = first_slots; slots; slots = slots->following)
		if (context ? slots->handle == context : slots->device == device)
			forget_slots(slots);
	torsh_cuda_unlock(&lock);
}

int torsh_device_cuda_here(struct device_location *here)
{
	const struct cuda_event_slots *slots = torsh_cuda_event_slots_of(NULL);

	if (!slots)
		return -ENODEV;
	*here = (struct device_location){.device = (uint32_t)slots->device, .context = slots->id};
	return 0;
}

bool torsh_device_cuda_is_active(int device)
{
	int is_active = 0;
	unsigned flags;

	return !torsh_driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) && is_active;
}

/* Retained for a moment: the driver has no other query for it. */
static void *primary_of(int device)
{
	void *context = NULL;

	if (!torsh_device_cuda_is_active(device) ||
	    torsh_driver.cuDevicePrimaryCtxRetain(&context, device))
		return NULL;
	torsh_driver.cuDevicePrimaryCtxRelease_v2(device);
	return context;
}

uint32_t torsh_device_cuda_number(void *context, int device)
{
	const struct cuda_event_slots *slots;

	if (!context)
		context = primary_of(device);
	slots = context ? find_slots_locked(context) : NULL;
	return slots ? slots->id : 0;
}
