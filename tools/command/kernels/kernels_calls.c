/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/kernels/kernels_calls.h"

#include <inttypes.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/report/text.h"

#define SHAPES_SHOWN 8
#define CALLS_SHOWN 8

static cJSON *number_or_null(uint64_t number)
{
	return number ? torsh_json_u64(number) : torsh_json_text(NULL);
}

static cJSON *make_device(const struct process_device *of)
{
	const struct event_device *device = &of->device;
	cJSON *object = torsh_json_object();
	char capability[32];

	snprintf(capability, sizeof(capability), "%" PRIu32 ".%" PRIu32, device->capability_major,
		 device->capability_minor);
	torsh_json_set(object, "pid", torsh_json_u64(of->process->pid));
	torsh_json_set(object, "device", torsh_json_u64(device->device));
	torsh_json_set(object, "name",
		       torsh_json_text(torsh_timeline_label(of->process, device->name)));
	torsh_json_set(object, "uuid",
		       torsh_json_text(torsh_timeline_label(of->process, device->uuid)));
	torsh_json_set(object, "compute_capability",
		       torsh_json_text(device->capability_major ? capability : NULL));
#define NUMBER(field) torsh_json_set(object, #field, number_or_null(device->field));
	NUMBER(memory_bytes)
	NUMBER(memory_bandwidth)
	NUMBER(l2_bytes)
	NUMBER(clock_khz)
	NUMBER(multiprocessors)
	NUMBER(warp_threads)
	NUMBER(multiprocessor_warps)
	NUMBER(multiprocessor_blocks)
	NUMBER(multiprocessor_shared_bytes)
	NUMBER(multiprocessor_registers)
	NUMBER(block_threads)
	NUMBER(block_shared_bytes)
	NUMBER(block_registers)
#undef NUMBER
	return object;
}

static cJSON *make_time(const struct device_time *row)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, row->kind == TIME_CALL ? "name" : "kind",
		       torsh_json_text(row->name));
	if (row->kind == TIME_WAIT)
		torsh_json_set(object, "op", torsh_json_text(row->operator_name));
	torsh_json_set(object, "calls", torsh_json_u64(row->calls));
	if (row->kind == TIME_CALL)
		torsh_json_set(object, "failed", torsh_json_u64(row->failed));
	torsh_json_set(object, "total_ns", torsh_json_u64(row->total_ns));
	torsh_json_set(object, "max_ns", torsh_json_u64(row->max_ns));
	return object;
}

void torsh_kernels_print_calls(struct json *json, const struct device_calls *calls)
{
	static const char *const names[N_TIME_KINDS] = {
		[TIME_CALL] = "calls", [TIME_WAIT] = "waits", [TIME_OVERHEAD] = "overhead"};

	torsh_json_array(json, "devices");
	for (size_t i = 0; i < calls->n_devices; i++)
		torsh_json_item(json, make_device(&calls->devices[i]));
	torsh_json_array_end(json);
	for (int kind = 0; kind < N_TIME_KINDS; kind++) {
		torsh_json_array(json, names[kind]);
		for (size_t i = 0; i < calls->n_times; i++) {
			if ((int)calls->times[i].kind == kind)
				torsh_json_item(json, make_time(&calls->times[i]));
		}
		torsh_json_array_end(json);
	}
}

static cJSON *make_triple(uint32_t x, uint32_t y, uint32_t z)
{
	cJSON *list = torsh_json_list();

	torsh_json_add(list, torsh_json_u64(x));
	torsh_json_add(list, torsh_json_u64(y));
	torsh_json_add(list, torsh_json_u64(z));
	return list;
}

static void set_occupancy(cJSON *object, const struct launch_shape *shape)
{
	struct occupancy occupancy = {0};
	const char *reason = shape->device
				     ? torsh_occupancy_of(shape->device, &shape->launch, &occupancy)
				     : "the device was not told";

	torsh_json_set(object, "occupancy",
		       reason ? torsh_json_text(NULL) : torsh_json_double(occupancy.share));
	torsh_json_set(object, "waves",
		       reason ? torsh_json_text(NULL) : torsh_json_double(occupancy.waves));
	torsh_json_set(
		object, "limited_by",
		torsh_json_text(reason ? NULL : torsh_occupancy_limit_names[occupancy.limit]));
	torsh_json_set(object, "occupancy_reason", torsh_json_text(reason));
}

static cJSON *make_shape(const struct launch_shape *shape)
{
	const struct event_kernel *launch = &shape->launch;
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "device", torsh_json_u64(launch->device));
	torsh_json_set(object, "grid", make_triple(launch->grid_x, launch->grid_y, launch->grid_z));
	torsh_json_set(object, "block",
		       make_triple(launch->block_x, launch->block_y, launch->block_z));
	torsh_json_set(object, "registers", torsh_json_u64(launch->registers));
	torsh_json_set(object, "static_shared_bytes", torsh_json_u64(launch->static_shared_bytes));
	torsh_json_set(object, "dynamic_shared_bytes",
		       torsh_json_u64(launch->dynamic_shared_bytes));
	torsh_json_set(object, "local_bytes", torsh_json_u64(launch->local_bytes));
	torsh_json_set(object, "calls", torsh_json_u64(shape->calls));
	torsh_json_set(object, "total_ns", torsh_json_u64(shape->total_ns));
	set_occupancy(object, shape);
	return object;
}

static bool is_of(const struct launch_shape *shape, const char *name)
{
	const char *own = torsh_timeline_label(shape->process, shape->launch.name);

	return strcmp(own && *own ? own : "?", name) == 0;
}

cJSON *torsh_kernels_shapes(const struct device_calls *calls, const char *name)
{
	cJSON *list = torsh_json_list();
	size_t n = 0;

	for (size_t i = 0; i < calls->n_shapes && n < SHAPES_SHOWN; i++) {
		if (!is_of(&calls->shapes[i], name))
			continue;
		torsh_json_add(list, make_shape(&calls->shapes[i]));
		n++;
	}
	return list;
}

static void show_times(const struct device_calls *calls, enum device_time_kind kind,
		       const char *heading)
{
	char text[SIZE_TEXT_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < calls->n_times; i++) {
		const struct device_time *row = &calls->times[i];

		if (row->kind != kind || n++ >= CALLS_SHOWN)
			continue;
		if (n == 1)
			torsh_text_heading(stdout, "%s", heading);
		torsh_text_cell(stdout, torsh_size_grouped(row->calls, text));
		torsh_text_cell(stdout, torsh_size_duration(row->total_ns, text));
		printf("  %s%s%s\n", row->name, row->operator_name ? ", in " : "",
		       row->operator_name ? row->operator_name : "");
	}
	if (n > CALLS_SHOWN)
		printf("... and %zu more in --json\n", n - CALLS_SHOWN);
}

void torsh_kernels_show_calls(const struct device_calls *calls)
{
	show_times(calls, TIME_CALL, "Calls of CUDA, by the host's time");
	show_times(calls, TIME_WAIT, "Waits for devices");
	show_times(calls, TIME_OVERHEAD, "Taken by CUPTI and the driver for themselves");
}
