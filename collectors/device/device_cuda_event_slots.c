/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/device/device_cuda_event_slots.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "collectors/cuda/cuda_lock.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"
#include "shim/sys.h"

#define PLACES_A_TIME 64u

static struct cuda_lock lock; /* guards the list, which only grows at its end, and places' making */
static struct cuda_place *places, **last_place = &places;
static struct cuda_place *unused; /* n_unused of them, one behind the other */
static uint32_t n_unused, n_places;

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
	int result = torsh_cuda_ask(torsh_driver.cuCtxGetCurrent(&current));

	visit->is_pushed = 0;
	visit->mode = DRIVER_CAPTURE_RELAXED;
	if (!result && current != context) {
		result = torsh_cuda_ask(torsh_driver.cuCtxPushCurrent_v2(context));
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
		result = torsh_cuda_ask(torsh_driver.cuStreamGetCtx(stream, context));
	else
		result = torsh_cuda_ask(torsh_driver.cuCtxGetCurrent(context));
	return result || *context ? result : -ENODEV;
}

static struct cuda_place *find_place(const void *context)
{
	struct cuda_place *place = places;

	while (place && atomic_load_explicit(&place->handle, memory_order_relaxed) != context)
		place = place->following;
	return place;
}

/* With the lock. A place that was forgotten, or a new one. */
static struct cuda_place *take_place(void)
{
	struct cuda_place *place = find_place(NULL);

	if (place)
		return place;
	if (!n_unused) {
		unused = torsh_sys_pages(PLACES_A_TIME * sizeof(*unused));
		n_unused = unused ? PLACES_A_TIME : 0;
	}
	if (!n_unused)
		return NULL;
	n_unused--;
	place = unused++;
	place->number = ++n_places;
	*last_place = place;
	last_place = &place->following;
	return place;
}

/* Not inlined: what it needs of the stack is needed once for each context. */
static __attribute__((noinline)) struct cuda_place *add_place(void *context)
{
	struct cuda_place *place = NULL;
	struct cuda_visit visit;
	uint64_t id = 0;
	int device;

	if (torsh_cuda_visit(&visit, context))
		return NULL;
	if (!torsh_cuda_ask(torsh_driver.cuCtxGetDevice(&device)) &&
	    (!torsh_driver.cuCtxGetId || !torsh_driver.cuCtxGetId(context, &id))) {
		torsh_cuda_lock(&lock);
		place = find_place(context);
		if (!place)
			place = take_place();
		if (place) {
			place->device = device;
			place->id = id ? (uint32_t)id : place->number;
			atomic_store_explicit(&place->handle, context, memory_order_relaxed);
		}
		torsh_cuda_unlock(&lock);
	}
	torsh_cuda_visit_end(&visit);
	return place;
}

static struct cuda_place *known_place(const void *context)
{
	struct cuda_place *place;

	torsh_cuda_lock(&lock);
	place = find_place(context);
	torsh_cuda_unlock(&lock);
	return place;
}

struct cuda_place *torsh_cuda_place_of(void *stream)
{
	struct cuda_place *place;
	void *context;

	if (context_of(stream, &context))
		return NULL;
	place = known_place(context);
	return place ? place : add_place(context);
}

/* With the lock. What was made there went with it, and its address is free for another one. */
static void forget_place(struct cuda_place *place)
{
	atomic_fetch_add_explicit(&place->generation, 1, memory_order_relaxed);
	place->stream = NULL;
	place->comparison = place->next = (struct cuda_comparison){0};
	place->due_ns = 0;
	atomic_store_explicit(&place->handle, NULL, memory_order_relaxed);
}

void torsh_device_cuda_forget(void *context, int device)
{
	struct cuda_place *place;

	torsh_cuda_lock(&lock);
	for (place = places; place; place = place->following)
		if (context ? place->handle == context : place->device == device)
			forget_place(place);
	torsh_cuda_unlock(&lock);
}

int torsh_device_cuda_here(struct device_place *here)
{
	const struct cuda_place *place = torsh_cuda_place_of(NULL);

	if (!place)
		return -ENODEV;
	*here = (struct device_place){.device = (uint32_t)place->device, .context = place->id};
	return 0;
}

int torsh_device_cuda_is_active(int device)
{
	int is_active = 0;
	unsigned flags;

	return !torsh_driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) && is_active;
}

/* Held for a moment: the driver says by nothing else which one it is. */
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
	const struct cuda_place *place;

	if (!context)
		context = primary_of(device);
	place = context ? known_place(context) : NULL;
	return place ? place->id : 0;
}
