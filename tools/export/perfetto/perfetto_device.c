/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activity in a trace for Perfetto: a track for each device of a process, below it one for
 * each stream, and flows from the launching spans, which are slices of their threads.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/activity_lanes.h"
#include "tools/export/perfetto/perfetto.h"
#include "tools/symbols/frame_text.h"

/*
 * Arrows are identified by process, correlation, and the index of the activity within its launch.
 */
#define FLOW_OF_LAUNCH (UINT64_C(1) << 63)
#define FLOW_PROCESS_SHIFT 44u
#define FLOW_PROCESS_MASK UINT64_C(0x7ffff)
#define FLOW_CORRELATION_SHIFT 12u

_Static_assert(FLOWS_MAX <= 1u << FLOW_CORRELATION_SHIFT,
	       "each arrow of a launch has a number of its own");

static uint64_t flow_of(const struct sequence *sequence, uint32_t correlation, uint32_t index)
{
	return FLOW_OF_LAUNCH | (sequence->id & FLOW_PROCESS_MASK) << FLOW_PROCESS_SHIFT |
	       (uint64_t)correlation << FLOW_CORRELATION_SHIFT | index;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static uint64_t add_device(struct perfetto *perfetto, const struct sequence *sequence,
			   uint32_t device)
{
	char name[32];

	snprintf(name, sizeof(name), "GPU %" PRIu32, device);
	return torsh_perfetto_add_inner(perfetto, sequence, sequence->process_track, name);
}

/*
 * Lanes of a stream have one name: viewers merge them into one track, with a row for each
 * overlapping activity.
 */
static void put_lane(void *context, struct device_lane *lane)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, lane->process);
	char name[64];

	if (!lane->device_own)
		lane->device_own = add_device(perfetto, sequence, lane->device);
	if (!sequence->has_context) {
		sequence->has_context = true;
		sequence->first_context = lane->context;
	}
	if (lane->context == sequence->first_context)
		snprintf(name, sizeof(name), "stream %" PRIu32, lane->stream);
	else
		snprintf(name, sizeof(name), "stream %" PRIu32 " (context %" PRIu32 ")",
			 lane->stream, lane->context);
	lane->own = torsh_perfetto_add_inner(perfetto, sequence, lane->device_own, name);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Bits of a grid's dimensions; no device exceeds them. */
#define X_BITS 31u
#define Y_BITS 16u

enum key_of { KEY_OF_TITLE, KEY_OF_DIMENSIONS };

static uint64_t title_key(const struct event *event)
{
	const struct event_copy *copy = &event->copy;

	/* A number above a byte is not CUPTI's, and may share a title with another. */
	if (event->id == EVENT_COPY)
		return UINT64_C(1) << 25 | (uint64_t)(copy->kind & 0xff) << 16 |
		       (copy->from & 0xff) << 8 | (copy->to & 0xff);
	return (event->id == EVENT_MEMSET ? UINT64_C(1) << 24 | (event->memset.to & 0xff)
					  : UINT64_C(1) << 26);
}

static uint64_t name_of(struct perfetto *perfetto, struct sequence *sequence,
			const struct device_activity *activity)
{
	char title[DEVICE_TITLE_BYTES];
	uint64_t number;
	bool is_new;

	if (activity->record.what == DEVICE_KERNEL)
		return torsh_perfetto_kernel(perfetto, sequence, activity->record.name);
	number = torsh_perfetto_made(sequence, title_key(&activity->event) << 1 | KEY_OF_TITLE,
				     &is_new);
	if (is_new)
		torsh_activity_title(&activity->event, title);
	return torsh_perfetto_made_name(perfetto, sequence, number, is_new ? title : NULL);
}

/* Returns the number of the text "[x, y, z]"; 0: the dimensions are invalid. */
static uint64_t dimensions_of(struct perfetto *perfetto, struct sequence *sequence, uint32_t x,
			      uint32_t y, uint32_t z)
{
	uint64_t key = (uint64_t)x << 2 * Y_BITS | (uint64_t)y << Y_BITS | z, number;
	char text[64];
	bool is_new;

	if (x >> X_BITS || y >> Y_BITS || z >> Y_BITS)
		return 0;
	number = torsh_perfetto_made(sequence, key << 1 | KEY_OF_DIMENSIONS, &is_new);
	if (is_new)
		snprintf(text, sizeof(text), "[%" PRIu32 ", %" PRIu32 ", %" PRIu32 "]", x, y, z);
	return torsh_perfetto_made_text(perfetto, sequence, number, is_new ? text : NULL);
}

/* Above the keys of titles. */
#define LINE_KEY (UINT64_C(1) << 40)

/*
 * Returns the number of the text "file(line): function" of the capture or the launch; 0: unknown.
 */
static uint64_t line_of(struct perfetto *perfetto, struct sequence *sequence,
			const struct device_activity *activity)
{
	uint64_t number;
	char *text = NULL;
	bool is_new;

	if (!activity->stack || !perfetto->trace->symbols)
		return 0;
	number = torsh_perfetto_made(sequence, (LINE_KEY | activity->stack) << 1 | KEY_OF_TITLE,
				     &is_new);
	if (is_new)
		text = torsh_stack_line_text(activity->process, activity->stack,
					     perfetto->trace->symbols);
	number = torsh_perfetto_made_text(perfetto, sequence, number, text);
	free(text);
	return number;
}

/* Names that an activity refers to; they are written before its packet is begun. */
struct row_names {
	uint64_t name, operator_text, grid, block, line;
};

static void annotate_kernel(struct event_bytes *event, const struct event_kernel *kernel,
			    const struct row_names *names)
{
	if (names->grid)
		torsh_perfetto_annotate(event, ANNOTATION_GRID, ANNOTATION_TEXT, names->grid);
	if (names->block)
		torsh_perfetto_annotate(event, ANNOTATION_BLOCK, ANNOTATION_TEXT, names->block);
	torsh_perfetto_annotate(event, ANNOTATION_REGISTERS, ANNOTATION_UINT, kernel->registers);
	torsh_perfetto_annotate(event, ANNOTATION_SHARED, ANNOTATION_UINT,
				(uint64_t)kernel->static_shared_bytes +
					kernel->dynamic_shared_bytes);
}

static void annotate_row(struct event_bytes *event, const struct device_activity *activity,
			 const struct row_names *names)
{
	if (activity->record.correlation)
		torsh_perfetto_annotate(event, ANNOTATION_CORRELATION, ANNOTATION_UINT,
					activity->record.correlation);
	if (names->operator_text)
		torsh_perfetto_annotate(event, ANNOTATION_OPERATOR, ANNOTATION_TEXT,
					names->operator_text);
	if (activity->record.what == DEVICE_KERNEL)
		annotate_kernel(event, &activity->event.kernel, names);
	else if (activity->record.what != DEVICE_GRAPH)
		torsh_perfetto_annotate(event, ANNOTATION_BYTES, ANNOTATION_UINT,
					activity->record.bytes);
	if (activity->record.node) {
		torsh_perfetto_annotate(event, ANNOTATION_GRAPH, ANNOTATION_UINT,
					activity->record.graph);
		torsh_perfetto_annotate(event, ANNOTATION_NODE, ANNOTATION_UINT,
					activity->record.node);
	}
	if (names->line)
		torsh_perfetto_annotate(event, ANNOTATION_LINE, ANNOTATION_TEXT, names->line);
	/*
	 * A flow into the past would not be shown: clocks differ, and the difference is written as
	 * an annotation.
	 */
	if (activity->has_launch && activity->record.begin_ns < activity->launch.shown_ns)
		torsh_perfetto_annotate(event, ANNOTATION_EARLY, ANNOTATION_UINT,
					activity->launch.shown_ns - activity->record.begin_ns);
}

static void put_row(void *context, const struct device_activity *activity,
		    const struct device_lane *lane, uint64_t begin_ns)
{
	static const enum category categories[N_DEVICE_WHATS] = {[DEVICE_KERNEL] = CATEGORY_KERNEL,
								 [DEVICE_COPY] = CATEGORY_COPY,
								 [DEVICE_MEMSET] = CATEGORY_MEMSET,
								 [DEVICE_GRAPH] = CATEGORY_GRAPH};
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, activity->process);
	const struct event_kernel *kernel = &activity->event.kernel;
	struct row_names names = {.name = name_of(perfetto, sequence, activity)};
	struct event_bytes event;

	if (!activity->reason)
		names.operator_text =
			torsh_perfetto_text(perfetto, sequence, activity->cause.operator_name);
	if (activity->record.what == DEVICE_KERNEL) {
		names.grid = dimensions_of(perfetto, sequence, kernel->grid_x, kernel->grid_y,
					   kernel->grid_z);
		names.block = dimensions_of(perfetto, sequence, kernel->block_x, kernel->block_y,
					    kernel->block_z);
	}
	names.line = line_of(perfetto, sequence, activity);
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, lane->own);
	perfetto_field(&event, EVENT_NAME, names.name);
	perfetto_field(&event, EVENT_CATEGORY, categories[activity->record.what]);
	annotate_row(&event, activity, &names);
	if (begin_ns != activity->record.begin_ns)
		torsh_perfetto_annotate(&event, ANNOTATION_LATE, ANNOTATION_UINT,
					begin_ns - activity->record.begin_ns);
	if (activity->index < FLOWS_MAX && torsh_trace_has_launch(perfetto->trace, activity))
		perfetto_eight(&event, EVENT_LAST_FLOW,
			       flow_of(sequence, activity->record.correlation, activity->index));
	torsh_perfetto_past_event(perfetto, sequence, &event, begin_ns);
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, lane->own);
	torsh_perfetto_past_event(perfetto, sequence, &event,
				  begin_ns + activity->record.duration_ns);
}

/* ---- launches -------------------------------------------------------------------------------- */

static void see_launch(void *context, const struct recorded_process *process,
		       const struct device_launch *launch)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, process);
	uint64_t track = torsh_perfetto_thread_track(perfetto, sequence, launch->thread);
	uint64_t name = torsh_perfetto_name(perfetto, sequence, launch->api);
	uint64_t stack = torsh_perfetto_stack(perfetto, sequence, launch->stack);
	const char *api = torsh_timeline_label(process, launch->api);
	struct event_bytes event;

	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&event, EVENT_NAME, name);
	perfetto_field(&event, EVENT_CATEGORY,
		       api && torsh_api_is_runtime(api) ? CATEGORY_RUNTIME : CATEGORY_DRIVER);
	if (launch->correlation)
		torsh_perfetto_annotate(&event, ANNOTATION_CORRELATION, ANNOTATION_UINT,
					launch->correlation);
	if (launch->result)
		torsh_perfetto_annotate(&event, ANNOTATION_RESULT, ANNOTATION_UINT,
					(uint32_t)launch->result);
	if (stack)
		torsh_perfetto_annotate(&event, ANNOTATION_STACK, ANNOTATION_TEXT, stack);
	for (uint32_t i = 0; i < launch->n_caused && i < FLOWS_MAX; i++)
		perfetto_eight(&event, EVENT_FLOW, flow_of(sequence, launch->correlation, i));
	torsh_perfetto_past_event(perfetto, sequence, &event, launch->shown_ns);
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	torsh_perfetto_past_event(perfetto, sequence, &event, launch->shown_end_ns);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	const struct perfetto *perfetto = context;

	torsh_activity_lanes_add(perfetto->rows, activity);
}

const struct device_visitor torsh_perfetto_device_visitor = {
	.launch = see_launch, .call = see_launch, .activity = see_activity};

void torsh_perfetto_devices_create(struct perfetto *perfetto)
{
	static const struct activity_lanes_visitor visitor = {.lane = put_lane,
							      .activity = put_row};

	perfetto->rows = torsh_activity_lanes_create(&visitor, perfetto);
}

void torsh_perfetto_devices_destroy(struct perfetto *perfetto)
{
	torsh_trace_warn_left_out(torsh_activity_lanes_destroy(perfetto->rows));
}
