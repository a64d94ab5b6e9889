/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What devices did, in Chrome's JSON as Kineto writes it: rows of a GPU are a process with the
 * device's number, its streams are threads; calls of CUDA are rows of the CPU's thread; an arrow
 * goes from each launch to all that it caused.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/containers/key_index.h"
#include "tools/export/chrome/chrome.h"
#include "tools/export/activity_lanes.h"

#define GPU_SORT_INDEX 5000000u /* devices come below processes, as in Kineto's traces */
#define OTHER_TID_BASE \
	0x1000000u /* for lanes that cannot have their stream's number, beyond any stream's */

/* Which numbers of processes and threads are in use. */
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

static void put_device(struct output_stream *output, uint32_t device,
		       const struct recorded_process *process)
{
	char argument[48];

	torsh_chrome_put_named(output, "process_name", device, 0,
			       torsh_recording_program_name(process));
	snprintf(argument, sizeof(argument), "\"labels\":\"GPU %" PRIu32 "\"", device);
	torsh_chrome_put_metadata(output, "process_labels", device, 0, argument);
	snprintf(argument, sizeof(argument), "\"sort_index\":%" PRIu64,
		 UINT64_C(0) + GPU_SORT_INDEX + device);
	torsh_chrome_put_metadata(output, "process_sort_index", device, 0, argument);
}

/* Distinguishes a lane from the stream with that number. */
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
	char *name = name_lane(lane, is_first), argument[48];

	if (is_new(&devices->devices, lane->device))
		put_device(chrome->output, lane->device, lane->process);
	torsh_chrome_put_named(chrome->output, "thread_name", lane->device, tid, name);
	snprintf(argument, sizeof(argument), "\"sort_index\":%" PRIu64, tid);
	torsh_chrome_put_metadata(chrome->output, "thread_sort_index", lane->device, tid, argument);
	free(name);
	devices->threads = torsh_array_reserve(devices->threads, devices->n_threads,
					       &devices->threads_room, sizeof(char *));
	devices->threads[devices->n_threads] =
		torsh_need_text("\"pid\":%" PRIu32 ",\"tid\":%" PRIu64, lane->device, tid);
	lane->own = devices->n_threads++;
}

static char *put_place(char *at, const struct device_activity *activity)
{
	const struct activity_record *record = &activity->record;

	at = NUMBER(at, "\"device\":", record->device);
	at = NUMBER(at, ",\"context\":", record->context);
	at = NUMBER(at, ",\"stream\":", record->stream);
	at = NUMBER(at, ",\"correlation\":", record->correlation);
	at = NUMBER(at, ",\"graph id\":", record->graph);
	return NUMBER(at, ",\"graph node id\":", record->node);
}

/* A time of nothing has no bandwidth. */
static char *put_copy_args(char *at, const struct activity_record *record)
{
	at = NUMBER(at, ",\"bytes\":", record->bytes);
	if (record->duration_ns)
		at += sprintf(at, ",\"memory bandwidth (GB/s)\":%.6g",
			      (double)record->bytes / (double)record->duration_ns);
	return at;
}

/* By id, which no other arrow has: that of a launch of a graph goes to many. */
static void put_arrow(struct chrome *chrome, const struct device_activity *activity,
		      const char *thread, uint64_t begin_ns)
{
	struct string_cache *strings = &torsh_chrome_process(chrome, activity->process)->strings;
	char *at;

	chrome->n_flows++;
	at = torsh_chrome_begin(chrome, "\"s\",\"cat\":\"ac2g\"", "", "ac2g",
				torsh_string_cache_thread(strings, activity->launch.thread),
				activity->launch.shown_ns);
	torsh_chrome_end(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
	at = torsh_chrome_begin(chrome, "\"f\",\"cat\":\"ac2g\",\"bp\":\"e\"", "", "ac2g", thread,
				begin_ns);
	torsh_chrome_end(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
}

static void put_row(void *context, const struct device_activity *activity,
		    const struct device_lane *lane, uint64_t begin_ns)
{
	static const char *const kinds[N_DEVICE_WHATS] = {
		[DEVICE_KERNEL] = "\"X\",\"cat\":\"kernel\"",
		[DEVICE_COPY] = "\"X\",\"cat\":\"gpu_memcpy\"",
		[DEVICE_MEMSET] = "\"X\",\"cat\":\"gpu_memset\"",
		/* no word of Kineto's, which doesn't have it */
		[DEVICE_GRAPH] = "\"X\",\"cat\":\"cuda_graph\"",
	};
	struct chrome *chrome = context;
	struct string_cache *strings = &torsh_chrome_process(chrome, activity->process)->strings;
	const char *thread = chrome->devices->threads[lane->own], *name;
	char title[DEVICE_TITLE_BYTES], *at;

	name = torsh_activity_title(&activity->event, title)
		       ? title
		       : torsh_string_cache_kernel(strings, activity->record.name);
	at = torsh_chrome_begin(chrome, kinds[activity->record.what], "", name, thread, begin_ns);
	at = torsh_digits_us(PUT(at, ",\"dur\":"), activity->record.duration_ns);
	at = PUT(at, ",\"args\":{");
	if (!activity->reason)
		at = PUT(NUMBER(at, "\"External id\":", activity->cause.operator_span + 1), ",");
	if (activity->record.what == DEVICE_KERNEL)
		at = PUT(at, "\"queued\":0,"); /* CUPTI's word for unknown */
	at = put_place(at, activity);
	if (activity->record.what == DEVICE_KERNEL)
		at = torsh_chrome_put_kernel(at, chrome, activity->process,
					     &activity->event.kernel);
	else if (activity->record.what != DEVICE_GRAPH)
		at = put_copy_args(at, &activity->record);
	if (begin_ns != activity->record.begin_ns)
		at = NUMBER(at, ",\"shown late by (ns)\":", begin_ns - activity->record.begin_ns);
	/* One line: of a graph's replays the whole stacks would be the most of a trace. */
	at = torsh_chrome_put_text(at, "asked for at",
				   torsh_string_cache_line(strings, activity->stack));
	torsh_chrome_end(chrome, PUT(at, "}"));
	if (torsh_trace_has_launch(chrome->trace, activity))
		put_arrow(chrome, activity, thread, begin_ns);
}

/* ---- calls of CUDA --------------------------------------------------------------------------- */

/* HTA recognises launches by the names that they had before CUDA 13. */
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
	char *at = torsh_chrome_begin(chrome,
				      torsh_api_is_runtime(name) ? "\"X\",\"cat\":\"cuda_runtime\""
								 : "\"X\",\"cat\":\"cuda_driver\"",
				      "", name, torsh_string_cache_thread(strings, launch->thread),
				      launch->shown_ns);

	at = torsh_digits_us(PUT(at, ",\"dur\":"), launch->shown_end_ns - launch->shown_ns);
	at = PUT(at, ",\"args\":{");
	if (launch->cause.has_operator)
		at = PUT(NUMBER(at, "\"External id\":", launch->cause.operator_span + 1), ",");
	at = NUMBER(at, "\"correlation\":", launch->correlation);
	if (launch->result)
		at += sprintf(at, ",\"result\":%" PRId32, launch->result);
	at = torsh_chrome_put_text(at, "Call stack",
				   torsh_string_cache_stack(strings, launch->stack));
	torsh_chrome_end(chrome, PUT(at, "}"));
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
