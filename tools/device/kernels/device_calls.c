/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/device_calls.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

const char *torsh_wait_name(uint32_t kind)
{
	static const char *const names[N_WAIT_KINDS] = {
		[WAIT_UNKNOWN] = "unknown",
		[WAIT_FOR_EVENT] = "event",
		[WAIT_STREAM_FOR_EVENT] = "stream for event",
		[WAIT_FOR_STREAM] = "stream",
		[WAIT_FOR_CONTEXT] = "context",
	};

	return kind < N_WAIT_KINDS ? names[kind] : "unknown";
}

/*
 * CUpti_ActivityOverheadKind: below 2^16 those of the driver, above those of CUPTI and the
 * runtime.
 */
static const char *overhead_name(uint32_t kind)
{
	static const char *const names[] = {
		"unknown",
		"CUPTI flushes buffers",
		"CUPTI instruments",
		"CUPTI makes resources",
		"the runtime loads modules",
		"functions are loaded when first used",
		"the command buffer is full",
		"CUPTI requests a buffer",
		"CUPTI prepares for managed memory",
	};
	uint32_t i = kind >> 16;

	if (kind == 1)
		return "the driver compiles";
	return i < sizeof(names) / sizeof(*names) ? names[i] : "unknown";
}

/* ---- rows by what they are of ---------------------------------------------------------------- */

static struct device_time *find_time(struct device_calls *calls, enum device_time_kind kind,
				     const char *name, const char *operator_name)
{
	const char *own_name = torsh_intern(&calls->texts, name);
	const char *own_operator = torsh_intern(&calls->texts, operator_name ? operator_name : "");
	const uint64_t key[] = {kind, (uintptr_t)own_name, (uintptr_t)own_operator};
	size_t row =
		torsh_hash_map_put(&calls->known_times, key, sizeof(key), calls->n_times)->value;

	if (row < calls->n_times)
		return &calls->times[row];
	calls->times = torsh_array_reserve(calls->times, calls->n_times, &calls->times_room,
					   sizeof(*calls->times));
	calls->times[calls->n_times] = (struct device_time){
		.kind = kind,
		.name = own_name,
		.operator_name = operator_name ? own_operator : NULL,
	};
	return &calls->times[calls->n_times++];
}

static void add_time(struct device_time *row, uint64_t duration_ns, bool has_failed)
{
	row->calls++;
	row->failed += has_failed;
	row->total_ns += duration_ns;
	row->max_ns = duration_ns > row->max_ns ? duration_ns : row->max_ns;
}

static const char *label_or(const struct recorded_process *process, uint32_t label,
			    const char *otherwise)
{
	const char *text = torsh_timeline_label(process, label);

	return text ? text : otherwise;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void add_shape(struct device_calls *calls, const struct recorded_process *process,
		      const struct event_kernel *kernel)
{
	const uint64_t key[] = {
		(uintptr_t)process,
		kernel->name,
		kernel->device,
		kernel->grid_x,
		kernel->grid_y,
		kernel->grid_z,
		kernel->block_x,
		kernel->block_y,
		kernel->block_z,
		kernel->registers,
		kernel->static_shared_bytes,
		kernel->dynamic_shared_bytes,
		kernel->local_bytes,
	};
	size_t row =
		torsh_hash_map_put(&calls->known_shapes, key, sizeof(key), calls->n_shapes)->value;

	if (row == calls->n_shapes) {
		calls->shapes = torsh_array_reserve(calls->shapes, calls->n_shapes,
						    &calls->shapes_room, sizeof(*calls->shapes));
		calls->shapes[calls->n_shapes++] =
			(struct launch_shape){.process = process, .launch = *kernel};
	}
	calls->shapes[row].calls++;
	calls->shapes[row].total_ns += kernel->duration_ns;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add_device(struct device_calls *calls, const struct recorded_process *process,
		       const struct event_device *device)
{
	for (size_t i = 0; i < calls->n_devices; i++) {
		if (calls->devices[i].process == process &&
		    calls->devices[i].device.device == device->device)
			return;
	}
	calls->devices = torsh_array_reserve(calls->devices, calls->n_devices, &calls->devices_room,
					     sizeof(*calls->devices));
	calls->devices[calls->n_devices++] =
		(struct process_device){.process = process, .device = *device};
}

void torsh_device_calls_create(struct device_calls *calls)
{
	*calls = (struct device_calls){0};
}

/* A launch is a call, too. */
#define ADD_CALL(says)                                                                   \
	add_time(find_time(calls, TIME_CALL, label_or(process, (says)->api, "?"), NULL), \
		 (says)->duration_ns, (says)->result)

void torsh_device_calls_add(struct device_calls *calls, const struct recorded_process *process,
			    const struct event *event, uint32_t operator_label)
{
	switch (event->id) {
	case EVENT_LAUNCH:
		ADD_CALL(&event->launch);
		break;
	case EVENT_DEVICE_CALL:
		ADD_CALL(&event->device_call);
		break;
	case EVENT_KERNEL:
		add_shape(calls, process, &event->kernel);
		break;
	case EVENT_DEVICE:
		add_device(calls, process, &event->device);
		break;
	case EVENT_DEVICE_WAIT:
		add_time(find_time(calls, TIME_WAIT, torsh_wait_name(event->device_wait.kind),
				   label_or(process, operator_label, NULL)),
			 event->device_wait.duration_ns, false);
		break;
	case EVENT_DEVICE_OVERHEAD:
		add_time(find_time(calls, TIME_OVERHEAD, overhead_name(event->device_overhead.kind),
				   NULL),
			 event->device_overhead.duration_ns, false);
		break;
	default:
		break;
	}
}

#undef ADD_CALL

static int compare_times(const void *a, const void *b)
{
	const struct device_time *x = a, *y = b;
	int rc = (x->kind > y->kind) - (x->kind < y->kind);

	if (rc == 0)
		rc = (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
	return rc ? rc : strcmp(x->name, y->name);
}

static int compare_shapes(const void *a, const void *b)
{
	const struct launch_shape *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static const struct event_device *device_of(const struct device_calls *calls,
					    const struct launch_shape *shape)
{
	for (size_t i = 0; i < calls->n_devices; i++) {
		if (calls->devices[i].process == shape->process &&
		    calls->devices[i].device.device == shape->launch.device)
			return &calls->devices[i].device;
	}
	return NULL;
}

void torsh_device_calls_finish(struct device_calls *calls)
{
	torsh_hash_map_free(&calls->known_times);
	torsh_hash_map_free(&calls->known_shapes);
	for (size_t i = 0; i < calls->n_shapes; i++)
		calls->shapes[i].device = device_of(calls, &calls->shapes[i]);
	if (calls->n_times)
		qsort(calls->times, calls->n_times, sizeof(*calls->times), compare_times);
	if (calls->n_shapes)
		qsort(calls->shapes, calls->n_shapes, sizeof(*calls->shapes), compare_shapes);
}

void torsh_device_calls_free(struct device_calls *calls)
{
	torsh_intern_free(&calls->texts);
	free(calls->times);
	free(calls->shapes);
	free(calls->devices);
}
