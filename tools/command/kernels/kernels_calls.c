/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/kernels/kernels_calls.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/report/text.h"

#define SHAPES_SHOWN 8
#define CALLS_SHOWN 8

static void emit_device(struct json_writer *json, const struct process_device *of)
{
	const struct event_device *device = &of->device;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", of->process->pid);
	torsh_json_put_u64(json, "device", device->device);
	torsh_json_put_text(json, "name", torsh_timeline_label(of->process, device->name));
	torsh_json_put_text(json, "uuid", torsh_timeline_label(of->process, device->uuid));
	if (device->capability_major)
		torsh_json_put_format(json, "compute_capability", "%" PRIu32 ".%" PRIu32,
				      device->capability_major, device->capability_minor);
	else
		torsh_json_put_null(json, "compute_capability");
#define NUMBER(field) torsh_json_put_known(json, #field, device->field, device->field);
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
	torsh_json_end_object(json);
}

static void emit_time(struct json_writer *json, const struct device_time *row)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, row->kind == TIME_CALL ? "name" : "kind", row->name);
	if (row->kind == TIME_WAIT)
		torsh_json_put_text(json, "op", row->operator_name);
	torsh_json_put_u64(json, "calls", row->calls);
	if (row->kind == TIME_CALL)
		torsh_json_put_u64(json, "failed", row->failed);
	torsh_json_put_u64(json, "total_ns", row->total_ns);
	torsh_json_put_u64(json, "max_ns", row->max_ns);
	torsh_json_end_object(json);
}

void torsh_kernels_emit_calls(struct json_writer *json, const struct device_calls *calls)
{
	static const char *const names[N_TIME_KINDS] = {
		[TIME_CALL] = "calls", [TIME_WAIT] = "waits", [TIME_OVERHEAD] = "overhead"};

	torsh_json_begin_lines(json, "devices");
	for (size_t i = 0; i < calls->n_devices; i++)
		emit_device(json, &calls->devices[i]);
	torsh_json_end_array(json);
	for (int kind = 0; kind < N_TIME_KINDS; kind++) {
		torsh_json_begin_lines(json, names[kind]);
		for (size_t i = 0; i < calls->n_times; i++) {
			if ((int)calls->times[i].kind == kind)
				emit_time(json, &calls->times[i]);
		}
		torsh_json_end_array(json);
	}
}

static void emit_occupancy(struct json_writer *json, const struct launch_shape *shape)
{
	struct occupancy occupancy = {0};
	const char *reason = shape->device
				     ? torsh_occupancy_of(shape->device, &shape->launch, &occupancy)
				     : "the device is unknown";

	torsh_json_put_double(json, "occupancy", reason ? NAN : occupancy.share);
	torsh_json_put_double(json, "waves", reason ? NAN : occupancy.waves);
	torsh_json_put_text(json, "limited_by",
			    reason ? NULL : torsh_occupancy_limit_names[occupancy.limit]);
	torsh_json_put_text(json, "occupancy_reason", reason);
}

static void emit_shape(struct json_writer *json, const struct launch_shape *shape)
{
	const struct event_kernel *launch = &shape->launch;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "device", launch->device);
	torsh_json_put_three(json, "grid", launch->grid_x, launch->grid_y, launch->grid_z);
	torsh_json_put_three(json, "block", launch->block_x, launch->block_y, launch->block_z);
	torsh_json_put_u64(json, "registers", launch->registers);
	torsh_json_put_u64(json, "static_shared_bytes", launch->static_shared_bytes);
	torsh_json_put_u64(json, "dynamic_shared_bytes", launch->dynamic_shared_bytes);
	torsh_json_put_u64(json, "local_bytes", launch->local_bytes);
	torsh_json_put_u64(json, "calls", shape->calls);
	torsh_json_put_u64(json, "total_ns", shape->total_ns);
	emit_occupancy(json, shape);
	torsh_json_end_object(json);
}

static bool is_of(const struct launch_shape *shape, const char *name)
{
	const char *own = torsh_timeline_label(shape->process, shape->launch.name);

	return strcmp(own && *own ? own : "?", name) == 0;
}

void torsh_kernels_emit_shapes(struct json_writer *json, const struct device_calls *calls,
			       const char *name)
{
	size_t n = 0;

	torsh_json_begin_array(json, "launches");
	for (size_t i = 0; i < calls->n_shapes && n < SHAPES_SHOWN; i++) {
		if (!is_of(&calls->shapes[i], name))
			continue;
		emit_shape(json, &calls->shapes[i]);
		n++;
	}
	torsh_json_end_array(json);
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
		if (n == 1) {
			putchar('\n');
			torsh_text_heading(stdout, "%s", heading);
		}
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
