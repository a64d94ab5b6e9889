/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activity in Chrome's JSON as Kineto writes it: a GPU is a process with the device's
 * number, its streams are threads; calls of CUDA are slices of the CPU's thread; an arrow connects
 * each launch with all that it caused.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/containers/key_index.h"
#include "tools/export/chrome/chrome.h"
#include "tools/export/activity_lanes.h"

#define GPU_SORT_INDEX 5000000u /* devices come below processes, as in Kineto's traces */
#define OTHER_TID_BASE 0x1000000u /* of lanes without their stream's number: above all streams */

#define BANDWIDTH_DIGITS 6

/* Numbers of processes and threads that are in use. */
struct chrome_devices {
	struct activity_lanes *rows;
	struct key_index devices, streams; /* by device; by device and stream */
	char **threads; /* of lanes */
	size_t n_threads, threads_room;
};

static bool is_new(struct key_index *index, uint64_t key)
{
	struct key_slot *slot = torsh_key_index_find(index, key + 1);

	if (slot->key)
		return false;
	torsh_key_index_fill(index, slot, key + 1, 0);
	return true;
}

/* ---- rows of a GPU --------------------------------------------------------------------------- */

static void put_device(struct json_writer *json, uint32_t device,
		       const struct recorded_process *process)
{
	char label[32];

	torsh_chrome_put_text_of(json, "process_name", device, 0, "name",
				 torsh_recording_program_name(process));
	snprintf(label, sizeof(label), "GPU %" PRIu32, device);
	torsh_chrome_put_text_of(json, "process_labels", device, 0, "labels", label);
	torsh_chrome_put_number_of(json, "process_sort_index", device, 0, "sort_index",
				   UINT64_C(0) + GPU_SORT_INDEX + device);
}

static char *make_thread(uint32_t device, uint64_t tid)
{
	struct json_writer json;

	torsh_json_open_members(&json);
	torsh_json_put_u64(&json, "pid", device);
	torsh_json_put_u64(&json, "tid", tid);
	return torsh_json_close_memory(&json);
}

/* Returns a name that distinguishes a lane from the stream with that number. */
static char *name_lane(const struct device_lane *lane, bool is_first)
{
	if (lane->number)
		return torsh_need_text("stream %" PRIu32 " (context %" PRIu32 " of %" PRIu32
				       ", overlapping %" PRIu32 ")",
				       lane->stream, lane->context, lane->process->pid,
				       lane->number);
	if (!is_first)
		return torsh_need_text("stream %" PRIu32 " (context %" PRIu32 " of %" PRIu32 ")",
				       lane->stream, lane->context, lane->process->pid);
	return torsh_need_text("stream %" PRIu32, lane->stream);
}

static void put_lane(void *context, struct device_lane *lane)
{
	struct chrome *chrome = context;
	struct chrome_devices *devices = chrome->devices;
	bool is_first = !lane->number &&
			is_new(&devices->streams, (uint64_t)lane->device << 32 | lane->stream);
	uint64_t tid = is_first ? lane->stream : OTHER_TID_BASE + devices->n_threads;
	char *name = name_lane(lane, is_first);

	if (is_new(&devices->devices, lane->device))
		put_device(&chrome->json, lane->device, lane->process);
	torsh_chrome_put_text_of(&chrome->json, "thread_name", lane->device, tid, "name", name);
	torsh_chrome_put_number_of(&chrome->json, "thread_sort_index", lane->device, tid,
				   "sort_index", tid);
	free(name);
	devices->threads = torsh_array_reserve(devices->threads, devices->n_threads,
					       &devices->threads_room, sizeof(char *));
	devices->threads[devices->n_threads] = make_thread(lane->device, tid);
	lane->own = devices->n_threads++;
}

static void put_place(struct json_writer *json, const struct activity_record *record)
{
	torsh_json_put_u64(json, "device", record->device);
	torsh_json_put_u64(json, "context", record->context);
	torsh_json_put_u64(json, "stream", record->stream);
	torsh_json_put_u64(json, "correlation", record->correlation);
	torsh_json_put_u64(json, "graph id", record->graph);
	torsh_json_put_u64(json, "graph node id", record->node);
}

/* A copy without a duration has no bandwidth. */
static void put_copy_args(struct json_writer *json, const struct activity_record *record)
{
	torsh_json_put_u64(json, "bytes", record->bytes);
	if (record->duration_ns)
		torsh_json_put_rounded(json, "memory bandwidth (GB/s)",
				       (double)record->bytes / (double)record->duration_ns,
				       BANDWIDTH_DIGITS);
}

/* Arrows have ids of their own, because a launch of a graph has many. */
static void put_arrow(struct chrome *chrome, const struct device_activity *activity,
		      const char *thread, uint64_t begin_ns)
{
	struct string_cache *strings = &torsh_chrome_process(chrome, activity->process)->strings;

	chrome->n_flows++;
	torsh_chrome_put_arrow_end(chrome, "s", "ac2g",
				   torsh_string_cache_thread(strings, activity->launch.thread),
				   activity->launch.shown_ns);
	torsh_chrome_put_arrow_end(chrome, "f", "ac2g", thread, begin_ns);
}

static void put_args(struct chrome *chrome, struct string_cache *strings,
		     const struct device_activity *activity, uint64_t begin_ns)
{
	struct json_writer *json = &chrome->json;

	torsh_json_begin_object(json, "args");
	if (!activity->reason)
		torsh_json_put_u64(json, "External id", activity->cause.operator_span + 1);
	if (activity->record.what == DEVICE_KERNEL)
		torsh_json_put_u64(json, "queued", 0); /* CUPTI's value for unknown */
	put_place(json, &activity->record);
	if (activity->record.what == DEVICE_KERNEL)
		torsh_chrome_put_kernel(chrome, activity->process, &activity->event.kernel);
	else if (activity->record.what != DEVICE_GRAPH)
		put_copy_args(json, &activity->record);
	if (begin_ns != activity->record.begin_ns)
		torsh_json_put_u64(json, "shown late by (ns)",
				   begin_ns - activity->record.begin_ns);
	/*
	 * One line only: repeated for all replays of a graph, whole stacks would be most of the
	 * trace.
	 */
	torsh_chrome_put_text(json, "requested at",
			      torsh_string_cache_line(strings, activity->stack));
	torsh_json_end_object(json);
}

static void put_row(void *context, const struct device_activity *activity,
		    const struct device_lane *lane, uint64_t begin_ns)
{
	static const char *const categories[N_DEVICE_WHATS] = {
		[DEVICE_KERNEL] = "kernel",
		[DEVICE_COPY] = "gpu_memcpy",
		[DEVICE_MEMSET] = "gpu_memset",
		/* not from Kineto, which has none */
		[DEVICE_GRAPH] = "cuda_graph",
	};
	struct chrome *chrome = context;
	struct string_cache *strings = &torsh_chrome_process(chrome, activity->process)->strings;
	const char *thread = chrome->devices->threads[lane->own], *name;
	char title[DEVICE_TITLE_BYTES];

	name = torsh_activity_title(&activity->event, title)
		       ? title
		       : torsh_string_cache_kernel(strings, activity->record.name);
	torsh_chrome_begin(chrome, "X", categories[activity->record.what], "", name, thread,
			   begin_ns);
	torsh_chrome_put_duration(chrome, begin_ns, begin_ns + activity->record.duration_ns);
	put_args(chrome, strings, activity, begin_ns);
	torsh_json_end_object(&chrome->json);
	if (torsh_trace_has_launch(chrome->trace, activity))
		put_arrow(chrome, activity, thread, begin_ns);
}

/* ---- calls of CUDA --------------------------------------------------------------------------- */

/* Returns the name before CUDA 13, by which HTA recognises launches. */
static const char *plain_name(const char *api)
{
	return strncmp(api, "__cuda", 6) == 0 ? api + 2 : api;
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct device_launch *launch)
{
	struct chrome *chrome = context;
	struct string_cache *strings = &torsh_chrome_process(chrome, process)->strings;
	const char *name = plain_name(torsh_string_cache_name(strings, launch->api));
	struct json_writer *json = torsh_chrome_begin(
		chrome, "X", torsh_api_is_runtime(name) ? "cuda_runtime" : "cuda_driver", "", name,
		torsh_string_cache_thread(strings, launch->thread), launch->shown_ns);

	torsh_chrome_put_duration(chrome, launch->shown_ns, launch->shown_end_ns);
	torsh_json_begin_object(json, "args");
	if (launch->cause.has_operator)
		torsh_json_put_u64(json, "External id", launch->cause.operator_span + 1);
	torsh_json_put_u64(json, "correlation", launch->correlation);
	if (launch->result)
		torsh_json_put_i64(json, "result", launch->result);
	torsh_chrome_put_text(json, "Call stack", torsh_string_cache_stack(strings, launch->stack));
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	const struct chrome *chrome = context;

	torsh_activity_lanes_add(chrome->devices->rows, activity);
}

const struct device_visitor torsh_chrome_device_visitor = {
	.launch = see_launch, .call = see_launch, .activity = see_activity};

void torsh_chrome_devices_create(struct chrome *chrome)
{
	static const struct activity_lanes_visitor visitor = {.lane = put_lane,
							      .activity = put_row};
	struct chrome_devices *devices = torsh_need(calloc(1, sizeof(*devices)));

	devices->rows = torsh_activity_lanes_create(&visitor, chrome);
	torsh_key_index_create(&devices->devices);
	torsh_key_index_create(&devices->streams);
	chrome->devices = devices;
	chrome->kernels = torsh_chrome_kernels_create();
}

void torsh_chrome_devices_destroy(struct chrome *chrome)
{
	struct chrome_devices *devices = chrome->devices;

	torsh_trace_warn_left_out(torsh_activity_lanes_destroy(devices->rows));
	torsh_chrome_kernels_destroy(chrome->kernels);
	torsh_key_index_destroy(&devices->devices);
	torsh_key_index_destroy(&devices->streams);
	for (size_t i = 0; i < devices->n_threads; i++)
		free(devices->threads[i]);
	free(devices->threads);
	free(devices);
}
