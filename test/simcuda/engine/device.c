/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices and contexts. */
#include "test/simcuda/engine/device.h"

#include <pthread.h>
#include <stdlib.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/memory/memory.h"
#include "test/simcuda/engine/memory/others.h"
#include "test/simcuda/engine/memory/pool.h"
#include "test/simcuda/engine/queue.h"
#include "test/simcuda/engine/result.h"

enum {
	CONTEXT_MAGIC = 0x43747874,
	NOT_BEGUN = -1,
	/* Tools show a context's default stream as 7. */
	LEGACY_STREAM_FLAGS = 0,
};

static struct sim_device devices[SIM_MAX_DEVICES];
static uint32_t last_context;
static int begun = NOT_BEGUN;
static bool is_forked;

struct sim_device *sim_device(int ordinal)
{
	return ordinal >= 0 && ordinal < sim_config()->n_devices ? &devices[ordinal] : NULL;
}

bool sim_device_owns(uint64_t address)
{
	for (int i = 0; i < sim_config()->n_devices; i++)
		if (devices[i].is_open &&
		    address - devices[i].memory_base < sim_config()->device_bytes)
			return true;
	return false;
}

static int open_device(int ordinal)
{
	struct sim_device *device = &devices[ordinal];

	device->ordinal = ordinal;
	for (int i = SIM_COPY_IN; i < SIM_N_UNITS; i++)
		device->units[i].n_most = 1;
	device->units[SIM_COMPUTE].n_most = sim_config()->n_concurrent;
	int result = sim_memory_open(device);
	if (result)
		return result;
	device->is_open = true;
	device->default_pool = device->current_pool = sim_pool_create(device);
	device->graph_pool = sim_pool_create(device);
	device->graph_pool->threshold_bytes = UINT64_MAX; /* it keeps all until it is trimmed */
	return SIM_SUCCESS;
}

static void forget_in_child(void)
{
	is_forked = true;
}

bool sim_is_forked(void)
{
	return is_forked;
}

static void begin(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
	begun = sim_config()->driver == SIM_DRIVER_WITHOUT_DEVICE || !sim_config()->n_devices
			? SIM_NO_DEVICE
			: SIM_SUCCESS;
	for (int i = 0; begun == SIM_SUCCESS && i < sim_config()->n_devices; i++)
		begun = open_device(i);
}

int sim_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	return sim_check_begun();
}

int sim_check_begun(void)
{
	return begun == NOT_BEGUN || sim_is_forked() ? SIM_NOT_INITIALIZED : begun;
}

bool sim_context_is_live(const struct sim_context *context)
{
	return context && context->magic == CONTEXT_MAGIC;
}

static void report(enum sim_resource what, struct sim_context *context)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (tracer && tracer->resource)
		tracer->resource(&(struct sim_resource_event){.what = what, .context = context});
}

/* What the driver needs of the device for a context. */
static void take_memory(struct sim_context *context)
{
	size_t bytes = (sim_config()->context_bytes + SIM_ALIGNMENT - 1) & -(size_t)SIM_ALIGNMENT;
	struct sim_extents *memory = &context->device->free_memory;

	if (bytes && sim_extents_take(memory, bytes, SIM_ALIGNMENT, &context->offset))
		context->bytes = bytes;
	sim_memory_left(context->device);
}

static void give_memory(struct sim_context *context)
{
	if (context->bytes)
		sim_extents_give(&context->device->free_memory, context->offset, context->bytes);
	context->bytes = 0;
	sim_memory_left(context->device);
}

int sim_context_create(struct sim_device *device, unsigned flags, struct sim_context **out)
{
	struct sim_context *context = calloc(1, sizeof(*context));

	if (!context)
		return SIM_OUT_OF_MEMORY;
	context->magic = CONTEXT_MAGIC;
	context->device = device;
	context->flags = flags;
	sim_lock();
	context->id = ++last_context;
	take_memory(context);
	sim_unlock();
	sim_stream_create(context, LEGACY_STREAM_FLAGS, 0, &context->legacy);
	if (sim_log_is_on())
		sim_log("{\"kind\":\"context\",\"context\":%u,\"device\":%d,\"bytes\":%lu}",
			context->id, device->ordinal, context->bytes);
	report(SIM_CONTEXT_CREATED, context);
	*out = context;
	return SIM_SUCCESS;
}

static _Thread_local struct sim_context *current;

struct sim_context *sim_context_current(void)
{
	return sim_context_is_live(current) ? current : NULL;
}

void sim_context_set_current(struct sim_context *context)
{
	current = context;
}

int sim_context_destroy(struct sim_context *context)
{
	sim_context_synchronize(context);
	report(SIM_CONTEXT_DESTROYED, context);
	sim_memory_free_all(context->id);
	sim_lock();
	context->magic = 0;
	give_memory(context);
	for (struct sim_stream *stream = context->streams; stream; stream = stream->next)
		stream->magic = 0;
	sim_unlock();
	return SIM_SUCCESS;
}

int sim_primary_retain(struct sim_device *device, struct sim_context **context)
{
	static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER; /* of one primary context */
	int result = SIM_SUCCESS;

	pthread_mutex_lock(&creating);
	if (!device->primary)
		result = sim_context_create(device, device->primary_flags, &device->primary);
	if (!result)
		device->n_primary_users++;
	*context = device->primary;
	pthread_mutex_unlock(&creating);
	return result;
}

int sim_primary_release(struct sim_device *device)
{
	struct sim_context *context = device->primary;

	if (!context || !device->n_primary_users)
		return SIM_INVALID_CONTEXT;
	if (--device->n_primary_users)
		return SIM_SUCCESS;
	device->primary = NULL;
	return sim_context_destroy(context);
}
