/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CUDA's row of the table: events of the driver's, by its entry points. */
#include "collectors/device_cuda.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "collectors/cuda.h"
#include "collectors/devices.h"
#include "shim/driver.h"

#define CONTEXTS_MAX 64u
#define EVENTS_A_TIME 128u /* of the records that stand for the driver's, by which pages are taken */
#define COMPARE_EVERY_NS UINT64_C(1000000000) /* the driver says distances in floats: near ones are exact */
#define COMPARE_TRIES 3
#define LOOK_NS 50000u /* at a mark, until it is reached */

/* Both clocks at one moment. */
struct comparison {
	void *mark, *after; /* the driver's events */
	uint64_t moment_ns;
};

/* A context that was seen. */
struct place {
	void *_Atomic handle;
	_Atomic uint32_t generation; /* counts how often what was made in it became invalid */
	int device;
	uint32_t id;
	struct driver_event *spares; /* of this generation */
	/* The rest is of who holds the poll in collectors/cuda_events.c. */
	void *stream; /* our own, for comparisons */
	struct comparison comparison, next;
	uint64_t due_ns;
};

struct driver_event {
	struct driver_event *next;
	void *handle;
	struct place *place;
	uint32_t generation;
};

static struct cuda_lock lock; /* guards places, their spares, and blanks */
static struct place places[CONTEXTS_MAX];
static uint32_t n_places;
static struct driver_event *blanks; /* records that stand for nothing */
static struct device_clock clock_known;

static _Thread_local int last_problem;

/* Returns 0 or -EIO. */
static int ask(int result)
{
	if (result)
		last_problem = result;
	return result ? -EIO : 0;
}

const char *torsh_device_cuda_problem(void)
{
	const char *name = NULL;

	if (!last_problem || torsh_driver.cuGetErrorName(last_problem, &name))
		return NULL;
	return name;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* The agent's calls in a context of the program's. */
struct visit {
	int is_pushed, mode;
};

/* Relaxed: what would break a capture that the program has under way elsewhere is allowed. */
static int enter_context(struct visit *visit, void *context)
{
	void *current = NULL;
	int result = ask(torsh_driver.cuCtxGetCurrent(&current));

	visit->is_pushed = 0;
	visit->mode = DRIVER_CAPTURE_RELAXED;
	if (!result && current != context) {
		result = ask(torsh_driver.cuCtxPushCurrent_v2(context));
		visit->is_pushed = !result;
	}
	if (!result)
		torsh_driver.cuThreadExchangeStreamCaptureMode(&visit->mode);
	return result;
}

static void leave_context(struct visit *visit)
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
		result = ask(torsh_driver.cuStreamGetCtx(stream, context));
	else
		result = ask(torsh_driver.cuCtxGetCurrent(context));
	return result || *context ? result : -ENODEV;
}

static struct place *find_place(const void *context)
{
	for (uint32_t i = 0; i < n_places; i++)
		if (atomic_load_explicit(&places[i].handle, memory_order_relaxed) == context)
			return &places[i];
	return NULL;
}

static struct place *add_place(void *context)
{
	struct place *place = NULL;
	struct visit visit;
	uint64_t id = 0;
	int device;

	if (enter_context(&visit, context))
		return NULL;
	if (!ask(torsh_driver.cuCtxGetDevice(&device)) &&
	    (!torsh_driver.cuCtxGetId || !torsh_driver.cuCtxGetId(context, &id))) {
		torsh_cuda_lock(&lock);
		place = find_place(context);
		if (!place)
			place = find_place(NULL);
		if (!place && n_places < CONTEXTS_MAX)
			place = &places[n_places++];
		if (place) {
			place->device = device;
			place->id = id ? (uint32_t)id : (uint32_t)(place - places) + 1;
			atomic_store_explicit(&place->handle, context, memory_order_relaxed);
		}
		torsh_cuda_unlock(&lock);
	}
	leave_context(&visit);
	return place;
}

static struct place *known_place(const void *context)
{
	struct place *place;

	torsh_cuda_lock(&lock);
	place = find_place(context);
	torsh_cuda_unlock(&lock);
	return place;
}

static struct place *place_of(void *stream)
{
	struct place *place;
	void *context;

	if (context_of(stream, &context))
		return NULL;
	place = known_place(context);
	return place ? place : add_place(context);
}

/* What was made there went with it, and its address is free for another one. */
static void forget_place(struct place *place)
{
	torsh_cuda_lock(&lock);
	atomic_fetch_add_explicit(&place->generation, 1, memory_order_relaxed);
	while (place->spares) {
		struct driver_event *event = place->spares;

		place->spares = event->next;
		event->next = blanks;
		blanks = event;
	}
	place->stream = NULL;
	place->comparison = place->next = (struct comparison){0};
	place->due_ns = 0;
	atomic_store_explicit(&place->handle, NULL, memory_order_relaxed);
	torsh_cuda_unlock(&lock);
}

void torsh_device_cuda_forget(void *context, int device)
{
	for (uint32_t i = 0; i < n_places; i++)
		if (context ? places[i].handle == context : places[i].device == device)
			forget_place(&places[i]);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static int is_valid(const struct driver_event *event)
{
	return event->generation == atomic_load_explicit(&event->place->generation, memory_order_relaxed);
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
	if (is_valid(event)) {
		event->next = event->place->spares;
		event->place->spares = event;
	} else {
		event->next = blanks;
		blanks = event;
	}
	torsh_cuda_unlock(&lock);
}

static int make_event(struct place *place, void **handle)
{
	struct visit visit;
	int result = enter_context(&visit, atomic_load_explicit(&place->handle, memory_order_relaxed));

	if (result)
		return result;
	result = ask(torsh_driver.cuEventCreate(handle, 0));
	leave_context(&visit);
	return result;
}

static struct driver_event *take_event(struct place *place)
{
	struct driver_event *event;

	torsh_cuda_lock(&lock);
	event = place->spares;
	if (event) {
		place->spares = event->next;
		torsh_cuda_unlock(&lock);
		return event;
	}
	event = take_blank();
	torsh_cuda_unlock(&lock);
	if (!event)
		return NULL;
	event->place = place;
	event->generation = atomic_load_explicit(&place->generation, memory_order_relaxed);
	if (!make_event(place, &event->handle))
		return event;
	event->generation--;
	give_event(event);
	return NULL;
}

/* ---- the contract ------------------------------------------------------------------------------------------------ */

static int is_enabled(void)
{
	return torsh_driver.cuEventRecord || !torsh_driver_open();
}

static int record(void *stream, int *device, void **event, int64_t *cpu_ns)
{
	struct place *place = place_of(stream);
	struct driver_event *mark = *event;

	if (!place)
		return -ENODEV;
	if (mark && (mark->place != place || !is_valid(mark))) {
		give_event(mark);
		mark = NULL;
	}
	if (!mark)
		mark = take_event(place);
	*event = mark;
	if (!mark)
		return -EIO;
	if (device)
		*device = place->device;
	if (cpu_ns)
		*cpu_ns = (int64_t)torsh_cuda_monotonic_ns();
	return ask(torsh_driver.cuEventRecord(mark->handle, stream));
}

static int query(void *handle)
{
	int result = torsh_driver.cuEventQuery(handle);

	return result == DRIVER_NOT_READY ? -EAGAIN : ask(result);
}

/* In the events' context. */
static int distance(void *from, void *to, double *us)
{
	int result = query(to);
	float ms;

	if (!result)
		result = query(from);
	if (!result)
		result = ask(torsh_driver.cuEventElapsedTime(&ms, from, to));
	if (!result)
		*us = (double)ms * 1000;
	return result;
}

static int elapsed(void *from, void *to, double *us)
{
	struct driver_event *a = from, *b = to;
	struct visit visit;
	int result;

	if (a->place != b->place || !is_valid(a) || !is_valid(b))
		return -ENODEV;
	result = enter_context(&visit, atomic_load_explicit(&a->place->handle, memory_order_relaxed));
	if (result)
		return result;
	result = distance(a->handle, b->handle, us);
	leave_context(&visit);
	return result;
}

static int synchronize(void)
{
	return ask(torsh_driver.cuCtxSynchronize());
}

static int on_each_device(void (*op)(int device, void *context), void *context)
{
	int n, result = ask(torsh_driver.cuDeviceGetCount(&n));

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

struct device_place torsh_device_cuda_place(void *event, void *stream)
{
	const struct driver_event *mark = event;
	uint64_t id = 0;

	if (!mark || (torsh_driver.cuStreamGetId && torsh_driver.cuStreamGetId(stream, &id)))
		id = 0;
	return (struct device_place){
		.device = mark ? (uint32_t)mark->place->device : 0,
		.context = mark ? mark->place->id : 0,
		.stream = (uint32_t)id,
	};
}

int torsh_device_cuda_here(struct device_place *here)
{
	const struct place *place = place_of(NULL);

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

	if (!torsh_device_cuda_is_active(device) || torsh_driver.cuDevicePrimaryCtxRetain(&context, device))
		return NULL;
	torsh_driver.cuDevicePrimaryCtxRelease_v2(device);
	return context;
}

uint32_t torsh_device_cuda_number(void *context, int device)
{
	const struct place *place;

	if (!context)
		context = primary_of(device);
	place = context ? known_place(context) : NULL;
	return place ? place->id : 0;
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

/* In the place's context. */
static int prepare(struct place *place)
{
	int result = 0;

	if (!place->stream)
		result = ask(torsh_driver.cuStreamCreate(&place->stream, DRIVER_STREAM_NON_BLOCKING));
	if (!result && !place->next.mark)
		result = ask(torsh_driver.cuEventCreate(&place->next.mark, 0));
	if (!result && !place->next.after)
		result = ask(torsh_driver.cuEventCreate(&place->next.after, 0));
	return result;
}

/* A mark into our own stream, which is reached at once: between the reading before it and the one after. */
static int compare_once(struct place *place, uint64_t *width_ns)
{
	struct comparison *next = &place->next;
	uint64_t before = torsh_cuda_monotonic_ns(), now;
	int result = ask(torsh_driver.cuEventRecord(next->mark, place->stream));

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

static void measure_floor(const struct place *place)
{
	double us;

	if (torsh_driver.cuEventRecord(place->next.after, place->stream))
		return;
	for (int i = 0; i < COMPARE_TRIES; i++) {
		if (distance(place->next.mark, place->next.after, &us))
			continue;
		if (us * 1000 > (double)clock_known.floor_ns)
			clock_known.floor_ns = (uint64_t)(us * 1000);
		return;
	}
}

static void measure_step(const struct place *place)
{
	int64_t step;
	double us;

	if (!place->comparison.mark || distance(place->comparison.mark, place->next.mark, &us))
		return;
	step = (int64_t)(place->next.moment_ns - place->comparison.moment_ns) - (int64_t)(us * 1000);
	step = step < 0 ? -step : step;
	if ((uint64_t)step > clock_known.step_ns)
		clock_known.step_ns = (uint64_t)step;
}

/* In the place's context. Of several tries the first one that is narrow enough to be done in time. */
static void compare(struct place *place)
{
	struct comparison old = place->comparison;
	uint64_t now = torsh_cuda_monotonic_ns(), width_ns = 0;

	if (now < place->due_ns || prepare(place))
		return;
	for (int i = 0; i <= COMPARE_TRIES; i++) {
		int result = compare_once(place, &width_ns);

		/* The first one finds nothing warm. */
		if (i == 0 || result == -EAGAIN)
			continue;
		if (result)
			return;
		measure_floor(place);
		measure_step(place);
		place->comparison = place->next;
		place->next = old;
		place->due_ns = now + COMPARE_EVERY_NS;
		if (width_ns > clock_known.width_ns)
			clock_known.width_ns = width_ns;
		return;
	}
}

int torsh_device_cuda_moment(void *event, uint64_t *moment_ns)
{
	struct driver_event *mark = event;
	struct place *place = mark->place;
	struct visit visit;
	double us;
	int result;

	if (!is_valid(mark))
		return -ENODEV;
	result = enter_context(&visit, atomic_load_explicit(&place->handle, memory_order_relaxed));
	if (result)
		return result;
	compare(place);
	result = place->comparison.mark ? distance(place->comparison.mark, mark->handle, &us) : -EAGAIN;
	leave_context(&visit);
	if (!result)
		*moment_ns = place->comparison.moment_ns + (uint64_t)(int64_t)(us * 1000);
	return result;
}

struct device_clock torsh_device_cuda_clock(void)
{
	return clock_known;
}
