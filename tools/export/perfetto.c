/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Perfetto's native trace format: calls as slices on a track for each thread, memory as counters, forward and backward
 * joined by flows. Streams: what is held is which labels have been named, and the open calls.
 *
 * Each process is a sequence of packets of its own, with times as differences to the packet before and names as numbers.
 * Packets that are rare are made by protobuf-c; events, of which there are millions, are put together here from the
 * same field numbers (perfetto.proto): test/unit/trace_test.c reads them back through protobuf-c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "perfetto.pb-c.h"
#include "tools/die.h"
#include "tools/export/trace.h"

enum clock { CLOCK_ID_REALTIME = 1, CLOCK_ID_BOOTTIME = 6, CLOCK_ID_STEP = 64 };
enum flags { STATE_BEGINS = 1, STATE_NEEDED = 2 };

/* Tags of the fields that are put together by hand: number << 3, and 0 varint, 1 eight bytes, 2 bytes with their length. */
enum tag {
	TRACE_PACKET = 1 << 3 | 2,
	PACKET_TIMESTAMP = 8 << 3,
	PACKET_SEQUENCE = 10 << 3,
	PACKET_EVENT = 11 << 3 | 2,
	PACKET_FLAGS = 13 << 3,
	PACKET_CLOCK = 58 << 3,
	EVENT_CATEGORY = 3 << 3,
	EVENT_ANNOTATION = 4 << 3 | 2,
	EVENT_TYPE = 9 << 3,
	EVENT_NAME = 10 << 3,
	EVENT_TRACK = 11 << 3,
	EVENT_COUNTER = 30 << 3,
	EVENT_DOUBLE_COUNTER = 44 << 3 | 1,
	EVENT_FLOW = 47 << 3 | 1,
	EVENT_LAST_FLOW = 48 << 3 | 1,
	ANNOTATION_NAME = 1 << 3,
	ANNOTATION_UINT = 3 << 3,
	ANNOTATION_DOUBLE = 5 << 3 | 1,
	ANNOTATION_TEXT = 17 << 3,
};

/* CATEGORY(NAME, text), ANNOTATION(NAME, text): numbers are given in this order, from 1. */
#define CATEGORIES                        \
	CATEGORY(OPERATOR, "cpu_op")      \
	CATEGORY(USER, "user_annotation") \
	CATEGORY(MODULE, "module")        \
	CATEGORY(NVTX, "nvtx")            \
	CATEGORY(ITT, "itt")              \
	CATEGORY(MARK, "mark")            \
	CATEGORY(STEP, "step")

#define ANNOTATIONS                                  \
	ANNOTATION(INPUTS, "inputs")                 \
	ANNOTATION(OVERLOAD, "overload")             \
	ANNOTATION(SEQUENCE, "sequence")             \
	ANNOTATION(FORWARD_THREAD, "forward_thread") \
	ANNOTATION(MODULE, "module")                 \
	ANNOTATION(DOMAIN, "domain")                 \
	ANNOTATION(CATEGORY, "category")             \
	ANNOTATION(PAYLOAD, "payload")               \
	ANNOTATION(CUT, "cut_by_the_end")

enum category {
	NO_CATEGORY,
#define CATEGORY(NAME, text) CATEGORY_##NAME,
	CATEGORIES
#undef CATEGORY
		CATEGORIES_END
};

enum annotation {
	NO_ANNOTATION,
#define ANNOTATION(NAME, text) ANNOTATION_##NAME,
	ANNOTATIONS
#undef ANNOTATION
		ANNOTATIONS_END
};

#define EVENT_BYTES_MAX 256 /* of an event: numbers only */
#define LABEL_BYTES_MAX (1u << 15)

/* A counter that began: by what it counts. */
struct counter {
	uint64_t key; /* device, or label with COUNTER_OF_LABEL */
	uint64_t track;
	int64_t sum;
};

#define COUNTER_OF_LABEL (UINT64_C(1) << 32)

/* A track for calls that don't nest, in use by one at a time. */
struct async_track {
	uint64_t track;
	bool is_used;
};

struct sequence {
	const struct profile_process *process;
	uint32_t id;
	uint64_t last_ns, process_track;
	uint64_t *threads; /* tracks by row; 0: none yet */
	size_t n_threads;
	uint8_t *named; /* by label: enum named */
	struct counter *counters;
	size_t n_counters, counters_room;
	struct async_track *async;
	size_t n_async, async_room;
	uint64_t flow_base; /* added to ordinals: flows of processes are different ones */
};

enum named { NAMED_EVENT = 1, NAMED_TEXT = 2 };

struct perfetto {
	struct trace *trace;
	struct sink *sink;
	struct sequence *sequences;
	struct sequence *last;
	struct forward_calls *forward;
	uint64_t n_tracks;
};

static struct sequence *find_sequence(struct perfetto *perfetto, const struct profile_process *process)
{
	struct sequence *sequence = perfetto->last;

	if (sequence && sequence->process == process)
		return sequence;
	for (sequence = perfetto->sequences; sequence->process != process; sequence++)
		;
	return perfetto->last = sequence;
}

/* ---- packets by protobuf-c ---------------------------------------------------------------------------------------- */

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static void put_packet(struct sink *sink, const Perfetto__TracePacket *packet)
{
	size_t n = perfetto__trace_packet__get_packed_size(packet);
	uint8_t head[16], *end = head, *bytes = torsh_need(malloc(n));

	*end++ = TRACE_PACKET;
	end = put_varint(end, n);
	torsh_sink_put(sink, head, (size_t)(end - head));
	perfetto__trace_packet__pack(packet, bytes);
	torsh_sink_put(sink, bytes, n);
	free(bytes);
}

static Perfetto__TracePacket make_packet(const struct sequence *sequence)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	return packet;
}

static void put_track(struct perfetto *perfetto, const struct sequence *sequence, Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = make_packet(sequence);

	track->has_uuid = 1;
	track->uuid = ++perfetto->n_tracks;
	packet.track_descriptor = track;
	put_packet(perfetto->sink, &packet);
}

/* A track of the process that is no thread. Returns its number. */
static uint64_t add_track(struct perfetto *perfetto, const struct sequence *sequence, const char *name,
			  const Perfetto__CounterDescriptor *counter)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.has_parent_uuid = 1;
	track.parent_uuid = sequence->process_track;
	track.name = (char *)(uintptr_t)name;
	track.counter = (Perfetto__CounterDescriptor *)(uintptr_t)counter;
	put_track(perfetto, sequence, &track);
	return track.uuid;
}

static uint64_t thread_track(struct perfetto *perfetto, struct sequence *sequence, uint32_t row)
{
	const struct profile_process *process = sequence->process;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;

	if (row >= process->n_threads)
		row = (uint32_t)sequence->n_threads - 1;
	if (sequence->threads[row])
		return sequence->threads[row];
	thread.has_pid = thread.has_tid = 1;
	thread.pid = (int32_t)process->pid;
	thread.tid = (int32_t)torsh_trace_tid(process, row);
	thread.thread_name = row < process->n_threads ? process->threads[row].name : NULL;
	track.has_parent_uuid = 1;
	track.parent_uuid = sequence->process_track;
	track.thread = &thread;
	put_track(perfetto, sequence, &track);
	return sequence->threads[row] = track.uuid;
}

static void put_interned(struct sink *sink, const struct sequence *sequence, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = make_packet(sequence);

	packet.has_sequence_flags = 1;
	packet.sequence_flags = STATE_NEEDED;
	packet.interned_data = data;
	put_packet(sink, &packet);
}

/* The number of a label among the names of events, told before its first use. */
static uint64_t name_of(struct perfetto *perfetto, struct sequence *sequence, uint32_t label)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedString entry = PERFETTO__INTERNED_STRING__INIT, *entries = &entry;
	const char *name;

	if (label > sequence->process->n_functions)
		label = 0;
	if (sequence->named[label] & NAMED_EVENT)
		return (uint64_t)label + 1;
	sequence->named[label] |= NAMED_EVENT;
	name = torsh_timeline_label(sequence->process, label);
	entry.has_iid = 1;
	entry.iid = (uint64_t)label + 1;
	entry.name = torsh_need(strndup(name && *name ? name : "?", LABEL_BYTES_MAX));
	data.n_event_names = 1;
	data.event_names = &entries;
	put_interned(perfetto->sink, sequence, &data);
	free(entry.name);
	return entry.iid;
}

/* The same among the texts of annotations. */
static uint64_t text_of(struct perfetto *perfetto, struct sequence *sequence, uint32_t label)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedBytes entry = PERFETTO__INTERNED_BYTES__INIT, *entries = &entry;
	const char *text;

	if (label > sequence->process->n_functions)
		label = 0;
	if (sequence->named[label] & NAMED_TEXT)
		return (uint64_t)label + 1;
	sequence->named[label] |= NAMED_TEXT;
	text = torsh_timeline_label(sequence->process, label);
	entry.has_iid = entry.has_str = 1;
	entry.iid = (uint64_t)label + 1;
	entry.str.data = (uint8_t *)(uintptr_t)(text ? text : "");
	entry.str.len = strnlen((const char *)entry.str.data, LABEL_BYTES_MAX);
	data.n_debug_annotation_string_values = 1;
	data.debug_annotation_string_values = &entries;
	put_interned(perfetto->sink, sequence, &data);
	return entry.iid;
}

/* ---- events by hand ----------------------------------------------------------------------------------------------- */

/* An event under way: what is in its message so far. */
struct event_bytes {
	uint8_t bytes[EVENT_BYTES_MAX], *at;
};

static void put_field(struct event_bytes *event, enum tag tag, uint64_t value)
{
	event->at = put_varint(put_varint(event->at, tag), value);
}

static void put_eight(struct event_bytes *event, enum tag tag, uint64_t value)
{
	event->at = put_varint(event->at, tag);
	memcpy(event->at, &value, 8);
	event->at += 8;
}

static void start_event(struct event_bytes *event, Perfetto__TrackEvent__Type type, uint64_t track)
{
	event->at = event->bytes;
	put_field(event, EVENT_TYPE, type);
	put_field(event, EVENT_TRACK, track);
}

/* An annotation's fields are few and small: its length is one byte. */
static void annotate(struct event_bytes *event, enum annotation name, enum tag tag, uint64_t value)
{
	uint8_t *length;

	event->at = put_varint(event->at, EVENT_ANNOTATION);
	length = event->at++;
	put_field(event, ANNOTATION_NAME, name);
	if (tag == ANNOTATION_DOUBLE)
		put_eight(event, tag, value);
	else
		put_field(event, tag, value);
	*length = (uint8_t)(event->at - length - 1);
}

/* The packet around it. Times are differences; one that goes back is given whole. */
static void put_event(struct perfetto *perfetto, struct sequence *sequence, const struct event_bytes *event,
		      uint64_t at_ns)
{
	size_t n_event = (size_t)(event->at - event->bytes);
	uint8_t packet[64], *at = packet, *out;
	bool is_late = at_ns < sequence->last_ns;

	at = put_varint(put_varint(at, PACKET_TIMESTAMP), is_late ? at_ns : at_ns - sequence->last_ns);
	at = put_varint(put_varint(at, PACKET_SEQUENCE), sequence->id);
	at = put_varint(put_varint(at, PACKET_FLAGS), STATE_NEEDED);
	if (is_late)
		at = put_varint(put_varint(at, PACKET_CLOCK), CLOCK_ID_BOOTTIME);
	else
		sequence->last_ns = at_ns;
	at = put_varint(put_varint(at, PACKET_EVENT), n_event);
	out = (uint8_t *)torsh_sink_room(perfetto->sink, sizeof(packet) + 16 + EVENT_BYTES_MAX);
	*out++ = TRACE_PACKET;
	out = put_varint(out, (size_t)(at - packet) + n_event);
	memcpy(out, packet, (size_t)(at - packet));
	out += at - packet;
	memcpy(out, event->bytes, n_event);
	out += n_event;
	perfetto->sink->n = (size_t)((char *)out - perfetto->sink->buffer);
}

/* ---- calls -------------------------------------------------------------------------------------------------------- */

static enum category category_of(const struct call *call)
{
	if (call->is_module)
		return CATEGORY_MODULE;
	if (call->kind == CALL_OPERATOR)
		return call->scope == OP_USER ? CATEGORY_USER : CATEGORY_OPERATOR;
	return call->source == RANGE_BY_NVTX  ? CATEGORY_NVTX
	       : call->source == RANGE_BY_ITT ? CATEGORY_ITT
					      : CATEGORY_USER;
}

static uint64_t take_async_track(struct perfetto *perfetto, struct sequence *sequence)
{
	for (size_t i = 0; i < sequence->n_async; i++) {
		if (!sequence->async[i].is_used) {
			sequence->async[i].is_used = true;
			return sequence->async[i].track;
		}
	}
	sequence->async =
		torsh_need_room(sequence->async, sequence->n_async, &sequence->async_room, sizeof(*sequence->async));
	sequence->async[sequence->n_async++] =
		(struct async_track){.track = add_track(perfetto, sequence, "asynchronous", NULL), .is_used = true};
	return sequence->async[sequence->n_async - 1].track;
}

static void free_async_track(struct sequence *sequence, uint64_t track)
{
	for (size_t i = 0; i < sequence->n_async; i++) {
		if (sequence->async[i].track == track)
			sequence->async[i].is_used = false;
	}
}

/* Texts are named in packets of their own, which have to come first: before the event begins to be put together. */
static void annotate_call(struct perfetto *perfetto, struct sequence *sequence, struct event_bytes *event,
			  const struct call *call)
{
	double payload;
	uint64_t bits;

	if (call->inputs)
		annotate(event, ANNOTATION_INPUTS, ANNOTATION_TEXT, text_of(perfetto, sequence, call->inputs));
	if (call->overload)
		annotate(event, ANNOTATION_OVERLOAD, ANNOTATION_TEXT, text_of(perfetto, sequence, call->overload));
	if (call->sequence != OP_NO_SEQUENCE)
		annotate(event, ANNOTATION_SEQUENCE, ANNOTATION_UINT, call->sequence);
	if (call->scope == OP_BACKWARD && call->forward_thread)
		annotate(event, ANNOTATION_FORWARD_THREAD, ANNOTATION_UINT, call->forward_thread);
	if (call->module)
		annotate(event, ANNOTATION_MODULE, ANNOTATION_TEXT, text_of(perfetto, sequence, call->module));
	if (call->domain)
		annotate(event, ANNOTATION_DOMAIN, ANNOTATION_TEXT, text_of(perfetto, sequence, call->domain));
	if (call->category)
		annotate(event, ANNOTATION_CATEGORY, ANNOTATION_TEXT, text_of(perfetto, sequence, call->category));
	if (torsh_trace_payload(call->payload_type, call->payload, &payload)) {
		memcpy(&bits, &payload, sizeof(bits));
		annotate(event, ANNOTATION_PAYLOAD, ANNOTATION_DOUBLE, bits);
	}
}

/* Any forward operator may have a backward; an arrow that ends nowhere isn't shown. */
static void put_flow(struct perfetto *perfetto, const struct sequence *sequence, struct event_bytes *event,
		     const struct call *call)
{
	struct forward forward;

	if (torsh_forward_add(perfetto->forward, call))
		put_eight(event, EVENT_FLOW, sequence->flow_base + call->ordinal);
	else if (torsh_forward_take(perfetto->forward, call, &forward))
		put_eight(event, EVENT_LAST_FLOW, sequence->flow_base + forward.ordinal);
}

static void see_begin(void *context, struct call *call)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = find_sequence(perfetto, call->process);
	struct event_bytes event;
	uint64_t track, name;

	if (!torsh_trace_has(perfetto->trace, call->start_ns))
		return;
	track = call->is_async ? take_async_track(perfetto, sequence) : thread_track(perfetto, sequence, call->thread);
	call->own = (void *)(uintptr_t)track;
	name = name_of(perfetto, sequence, call->name);
	start_event(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	put_field(&event, EVENT_NAME, name);
	put_field(&event, EVENT_CATEGORY, category_of(call));
	annotate_call(perfetto, sequence, &event, call);
	put_flow(perfetto, sequence, &event, call);
	put_event(perfetto, sequence, &event, call->start_ns);
}

static void see_end(void *context, struct call *call)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = find_sequence(perfetto, call->process);
	uint64_t track = (uint64_t)(uintptr_t)call->own;
	struct event_bytes event;

	if (!track)
		return;
	start_event(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	if (call->is_cut)
		annotate(&event, ANNOTATION_CUT, ANNOTATION_UINT, 1);
	put_event(perfetto, sequence, &event, call->end_ns);
	if (call->is_async)
		free_async_track(sequence, track);
}

/* ---- other events ------------------------------------------------------------------------------------------------- */

static struct counter *find_counter(struct perfetto *perfetto, struct sequence *sequence, uint64_t key,
				    const char *name, Perfetto__CounterDescriptor__Unit unit)
{
	Perfetto__CounterDescriptor descriptor = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	struct counter *counter;

	for (size_t i = 0; i < sequence->n_counters; i++) {
		if (sequence->counters[i].key == key)
			return &sequence->counters[i];
	}
	sequence->counters = torsh_need_room(sequence->counters, sequence->n_counters, &sequence->counters_room,
					     sizeof(*sequence->counters));
	counter = &sequence->counters[sequence->n_counters++];
	counter->key = key;
	descriptor.has_unit = 1;
	descriptor.unit = unit;
	counter->track = add_track(perfetto, sequence, name, &descriptor);
	return counter;
}

static void put_tensor(struct perfetto *perfetto, struct sequence *sequence, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct event_bytes bytes;
	struct counter *counter;
	char name[64];

	snprintf(name, sizeof(name), tensor->device >> 8 ? "tensors on device %u:%u" : "tensors on the CPU",
		 tensor->device >> 8, tensor->device & 0xff);
	counter =
		find_counter(perfetto, sequence, tensor->device, name, PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES);
	counter->sum += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	if (!torsh_trace_has(perfetto->trace, event->at_ns))
		return;
	start_event(&bytes, PERFETTO__TRACK_EVENT__TYPE__COUNTER, counter->track);
	/* What was given out before the recording began is freed in it. */
	put_field(&bytes, EVENT_COUNTER,
		  tensor->allocated  ? tensor->allocated
		  : counter->sum > 0 ? (uint64_t)counter->sum
				     : 0);
	put_event(perfetto, sequence, &bytes, event->at_ns);
}

static void put_value(struct perfetto *perfetto, struct sequence *sequence, const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	const char *name = torsh_timeline_label(sequence->process, value->name);
	struct event_bytes bytes;
	struct counter *counter;
	uint64_t bits;
	double number;

	/* Viewers hang on counters that are infinite. */
	if (!torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	counter = find_counter(perfetto, sequence, value->name | COUNTER_OF_LABEL, name ? name : "?",
			       PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNSPECIFIED);
	memcpy(&bits, &number, sizeof(bits));
	start_event(&bytes, PERFETTO__TRACK_EVENT__TYPE__COUNTER, counter->track);
	put_eight(&bytes, EVENT_DOUBLE_COUNTER, bits);
	put_event(perfetto, sequence, &bytes, event->at_ns);
}

static void put_mark(struct perfetto *perfetto, struct sequence *sequence, const struct timeline_event *event)
{
	uint64_t track = thread_track(perfetto, sequence, event->thread);
	uint64_t name = name_of(perfetto, sequence, event->event.mark.name);
	struct event_bytes bytes;

	start_event(&bytes, PERFETTO__TRACK_EVENT__TYPE__INSTANT, track);
	put_field(&bytes, EVENT_NAME, name);
	put_field(&bytes, EVENT_CATEGORY, CATEGORY_MARK);
	put_event(perfetto, sequence, &bytes, event->at_ns);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = find_sequence(perfetto, process);

	(void)innermost;
	if (event->event.id == EVENT_TENSOR)
		put_tensor(perfetto, sequence, event);
	else if (!torsh_trace_has(perfetto->trace, event->at_ns))
		return;
	else if (event->event.id == EVENT_VALUE)
		put_value(perfetto, sequence, event);
	else if (event->event.id == EVENT_MARK)
		put_mark(perfetto, sequence, event);
}

/* ---- what a process begins with ----------------------------------------------------------------------------------- */

/*
 * Times of the trace are since the recording began; the wall clock stands beside them. Those of a sequence are
 * differences, the first one to 0.
 */
static void put_clocks(struct perfetto *perfetto, const struct sequence *sequence)
{
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock clocks[3], *all[3];
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__TracePacket packet = make_packet(sequence);
	static const uint32_t ids[] = {CLOCK_ID_BOOTTIME, CLOCK_ID_REALTIME, CLOCK_ID_STEP};

	for (size_t i = 0; i < 3; i++) {
		perfetto__clock_snapshot__clock__init(&clocks[i]);
		clocks[i].has_clock_id = clocks[i].has_timestamp = 1;
		clocks[i].clock_id = ids[i];
		all[i] = &clocks[i];
	}
	clocks[1].timestamp = perfetto->trace->profile->start_realtime_ns;
	clocks[2].has_is_incremental = clocks[2].is_incremental = 1;
	snapshot.n_clocks = 3;
	snapshot.clocks = all;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_ID_STEP;
	packet.has_sequence_flags = packet.has_first_packet_on_sequence = packet.first_packet_on_sequence = 1;
	packet.sequence_flags = STATE_BEGINS;
	packet.clock_snapshot = &snapshot;
	packet.trace_packet_defaults = &defaults;
	put_packet(perfetto->sink, &packet);
}

static void put_categories(struct perfetto *perfetto, const struct sequence *sequence)
{
	static const char *const categories[] = {
#define CATEGORY(NAME, text) text,
		CATEGORIES
#undef CATEGORY
	};
	static const char *const annotations[] = {
#define ANNOTATION(NAME, text) text,
		ANNOTATIONS
#undef ANNOTATION
	};
	Perfetto__InternedString entries[CATEGORIES_END + ANNOTATIONS_END], *all[CATEGORIES_END + ANNOTATIONS_END];
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	size_t n = CATEGORIES_END - 1, n_all = n + ANNOTATIONS_END - 1;

	for (size_t i = 0; i < n_all; i++) {
		perfetto__interned_string__init(&entries[i]);
		entries[i].has_iid = 1;
		entries[i].iid = i < n ? i + 1 : i - n + 1;
		entries[i].name = (char *)(uintptr_t)(i < n ? categories[i] : annotations[i - n]);
		all[i] = &entries[i];
	}
	data.n_event_categories = n;
	data.event_categories = all;
	data.n_debug_annotation_names = n_all - n;
	data.debug_annotation_names = all + n;
	put_interned(perfetto->sink, sequence, &data);
}

static void put_process(struct perfetto *perfetto, struct sequence *sequence)
{
	const struct profile_process *process = sequence->process;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor descriptor = PERFETTO__PROCESS_DESCRIPTOR__INIT;

	descriptor.has_pid = 1;
	descriptor.pid = (int32_t)process->pid;
	descriptor.process_name = (char *)(uintptr_t)torsh_profile_program_name(process);
	descriptor.n_cmdline = process->n_arguments;
	descriptor.cmdline = process->arguments;
	track.process = &descriptor;
	put_track(perfetto, sequence, &track);
	sequence->process_track = track.uuid;
}

/* A slice whose times are known, before the events: its packets tell their times whole. */
static void put_whole(struct perfetto *perfetto, const struct sequence *sequence, Perfetto__TrackEvent *event,
		      uint64_t at_ns)
{
	Perfetto__TracePacket packet = make_packet(sequence);

	packet.has_sequence_flags = packet.has_timestamp = packet.has_timestamp_clock_id = 1;
	packet.sequence_flags = STATE_NEEDED;
	packet.timestamp = at_ns;
	packet.timestamp_clock_id = CLOCK_ID_BOOTTIME;
	packet.track_event = event;
	put_packet(perfetto->sink, &packet);
}

static void put_step(struct perfetto *perfetto, const struct sequence *sequence, uint64_t track,
		     const struct step *step)
{
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	uint64_t category = CATEGORY_STEP;
	char name[32];

	snprintf(name, sizeof(name), "step %" PRIu64, step->number);
	event.has_type = event.has_track_uuid = 1;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN;
	event.track_uuid = track;
	event.name = name;
	event.n_category_iids = 1;
	event.category_iids = &category;
	put_whole(perfetto, sequence, &event, step->start_ns);
	event = (Perfetto__TrackEvent)PERFETTO__TRACK_EVENT__INIT;
	event.has_type = event.has_track_uuid = 1;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_END;
	event.track_uuid = track;
	put_whole(perfetto, sequence, &event, step->end_ns);
}

static void put_steps(struct perfetto *perfetto, const struct sequence *sequence)
{
	const struct steps *steps = &torsh_survey_of(perfetto->trace->survey, sequence->process)->steps;
	uint64_t track;
	char *name;

	if (!steps->n)
		return;
	name = torsh_need_text("steps (%s)", torsh_step_rule_texts[steps->rule]);
	track = add_track(perfetto, sequence, name, NULL);
	free(name);
	for (size_t i = 0; i < steps->n; i++) {
		if (torsh_trace_has(perfetto->trace, steps->items[i].start_ns))
			put_step(perfetto, sequence, track, &steps->items[i]);
	}
}

/* What the writer saw of the process's memory now and then. */
static void put_series(struct perfetto *perfetto, const struct sequence *sequence)
{
	static const char *const names[] = {"heap", "mapped", "resident set"};
	const struct profile_process *process = sequence->process;
	Perfetto__CounterDescriptor descriptor = PERFETTO__COUNTER_DESCRIPTOR__INIT;

	descriptor.has_unit = 1;
	descriptor.unit = PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES;
	for (size_t k = 0; k < 3 && process->n_series; k++) {
		uint64_t track = add_track(perfetto, sequence, names[k], &descriptor);

		for (size_t i = 0; i < process->n_series; i++) {
			const struct profile_sample *sample = &process->series[i];
			const uint64_t values[] = {sample->heap_bytes, sample->mapped_bytes, sample->rss_bytes};
			Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;

			if (!torsh_trace_has(perfetto->trace, sample->at_ns))
				continue;
			event.has_type = event.has_track_uuid = event.has_counter_value = 1;
			event.type = PERFETTO__TRACK_EVENT__TYPE__COUNTER;
			event.track_uuid = track;
			event.counter_value = (int64_t)values[k];
			put_whole(perfetto, sequence, &event, sample->at_ns);
		}
	}
}

static void start_sequence(struct perfetto *perfetto, struct sequence *sequence, const struct profile_process *process,
			   uint32_t id)
{
	*sequence = (struct sequence){.process = process, .id = id, .flow_base = (uint64_t)id << 40};
	sequence->n_threads = process->n_threads + 1;
	sequence->threads = torsh_need_items(NULL, 0, sequence->n_threads, sizeof(*sequence->threads));
	sequence->named = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*sequence->named));
	put_clocks(perfetto, sequence);
	put_categories(perfetto, sequence);
	put_process(perfetto, sequence);
	put_steps(perfetto, sequence);
	put_series(perfetto, sequence);
}

static void free_sequence(struct sequence *sequence)
{
	free(sequence->threads);
	free(sequence->named);
	free(sequence->counters);
	free(sequence->async);
}

static int write_perfetto(struct trace *trace)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	struct perfetto perfetto = {.trace = trace, .sink = trace->sink, .forward = torsh_forward_create()};
	int rc;

	perfetto.sequences = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*perfetto.sequences));
	for (size_t i = 0; i < trace->n_processes; i++)
		start_sequence(&perfetto, &perfetto.sequences[i], trace->processes[i], (uint32_t)i + 1);
	rc = torsh_trace_walk(trace, &visitor, &perfetto);
	for (size_t i = 0; i < trace->n_processes; i++)
		free_sequence(&perfetto.sequences[i]);
	free(perfetto.sequences);
	torsh_forward_destroy(perfetto.forward);
	return rc;
}

const struct trace_format torsh_trace_perfetto = {
	.name = "perfetto", .ending = ".pftrace", .is_binary = true, .write = write_perfetto};
