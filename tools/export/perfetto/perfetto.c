/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Perfetto's native trace format: spans are slices on a track per thread, memory is a counter,
 * forward and backward spans are joined by flows. Streams: it holds only which labels have been
 * defined, and the open spans.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/export/perfetto/perfetto.h"
#include "tools/base/die.h"

struct sequence *torsh_perfetto_sequence(struct perfetto *perfetto,
					 const struct recorded_process *process)
{
	struct sequence *sequence = perfetto->last;

	if (sequence && sequence->process == process)
		return sequence;
	for (sequence = perfetto->sequences; sequence->process != process; sequence++)
		;
	return perfetto->last = sequence;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static enum category category_of(const struct span *span)
{
	if (span->is_module)
		return CATEGORY_MODULE;
	if (span->kind == SPAN_OPERATOR)
		return span->scope == OP_USER ? CATEGORY_USER : CATEGORY_OPERATOR;
	return span->source == RANGE_BY_NVTX  ? CATEGORY_NVTX
	       : span->source == RANGE_BY_ITT ? CATEGORY_ITT
					      : CATEGORY_USER;
}

/* Interns texts, which are separate packets: before the packet of the event is begun. */
static void annotate_span(struct perfetto *perfetto, struct sequence *sequence,
			  struct event_bytes *event, const struct span *span)
{
	uint64_t stack = torsh_perfetto_stack(perfetto, sequence, span->stack), bits;
	double payload;

	if (span->inputs)
		torsh_perfetto_annotate(event, ANNOTATION_INPUTS, ANNOTATION_TEXT,
					torsh_perfetto_text(perfetto, sequence, span->inputs));
	if (span->overload)
		torsh_perfetto_annotate(event, ANNOTATION_OVERLOAD, ANNOTATION_TEXT,
					torsh_perfetto_text(perfetto, sequence, span->overload));
	if (span->sequence != OP_NO_SEQUENCE)
		torsh_perfetto_annotate(event, ANNOTATION_SEQUENCE, ANNOTATION_UINT,
					span->sequence);
	if (span->scope == OP_BACKWARD && span->forward_thread)
		torsh_perfetto_annotate(event, ANNOTATION_FORWARD_THREAD, ANNOTATION_UINT,
					span->forward_thread);
	if (span->module)
		torsh_perfetto_annotate(event, ANNOTATION_MODULE, ANNOTATION_TEXT,
					torsh_perfetto_text(perfetto, sequence, span->module));
	if (span->domain)
		torsh_perfetto_annotate(event, ANNOTATION_DOMAIN, ANNOTATION_TEXT,
					torsh_perfetto_text(perfetto, sequence, span->domain));
	if (span->category)
		torsh_perfetto_annotate(event, ANNOTATION_CATEGORY, ANNOTATION_TEXT,
					torsh_perfetto_text(perfetto, sequence, span->category));
	if (torsh_trace_payload(span->payload_type, span->payload, &payload)) {
		memcpy(&bits, &payload, sizeof(bits));
		torsh_perfetto_annotate(event, ANNOTATION_PAYLOAD, ANNOTATION_DOUBLE, bits);
	}
	if (stack)
		torsh_perfetto_annotate(event, ANNOTATION_STACK, ANNOTATION_TEXT, stack);
}

/* Any forward operator may have a backward span; a flow with one end only isn't shown. */
static void put_flow(struct perfetto *perfetto, const struct sequence *sequence,
		     struct event_bytes *event, const struct span *span)
{
	struct forward forward;

	if (torsh_forward_add(perfetto->forward, span))
		perfetto_eight(event, EVENT_FLOW, sequence->flow_base + span->ordinal);
	else if (torsh_forward_take(perfetto->forward, span, &forward))
		perfetto_eight(event, EVENT_LAST_FLOW, sequence->flow_base + forward.ordinal);
}

static void see_begin(void *context, struct span *span)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, span->process);
	struct event_bytes event;
	uint64_t track, name;

	if (!torsh_trace_has(perfetto->trace, span->start_ns))
		return;
	track = span->is_async ? torsh_perfetto_take_async(perfetto, sequence)
			       : torsh_perfetto_thread_track(perfetto, sequence, span->thread);
	span->own = (void *)(uintptr_t)track;
	name = torsh_perfetto_name(perfetto, sequence, span->name);
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&event, EVENT_NAME, name);
	perfetto_field(&event, EVENT_CATEGORY, category_of(span));
	annotate_span(perfetto, sequence, &event, span);
	put_flow(perfetto, sequence, &event, span);
	torsh_perfetto_event(perfetto, sequence, &event, span->start_ns);
}

static void see_end(void *context, struct span *span)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, span->process);
	uint64_t track = (uint64_t)(uintptr_t)span->own;
	struct event_bytes event;

	if (!track)
		return;
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	if (span->is_cut)
		torsh_perfetto_annotate(&event, ANNOTATION_CUT, ANNOTATION_UINT, 1);
	torsh_perfetto_event(perfetto, sequence, &event, span->end_ns);
	if (span->is_async)
		torsh_perfetto_free_async(sequence, track);
}

/* ---- other events ---------------------------------------------------------------------------- */

static void put_tensor(struct perfetto *perfetto, struct sequence *sequence,
		       const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct event_bytes bytes;
	struct counter *counter;
	char name[64];

	snprintf(name, sizeof(name),
		 tensor->device >> 8 ? "tensors on device %u:%u" : "tensors on the CPU",
		 tensor->device >> 8, tensor->device & 0xff);
	counter = torsh_perfetto_counter(perfetto, sequence, tensor->device, name,
					 PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES);
	counter->sum += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	if (!torsh_trace_has(perfetto->trace, event->at_ns))
		return;
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__COUNTER, counter->track);
	/* Memory that was allocated before the recording may be freed in it. */
	perfetto_field(&bytes, EVENT_COUNTER,
		       tensor->allocated  ? tensor->allocated
		       : counter->sum > 0 ? (uint64_t)counter->sum
					  : 0);
	torsh_perfetto_event(perfetto, sequence, &bytes, event->at_ns);
}

static void put_value(struct perfetto *perfetto, struct sequence *sequence,
		      const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	const char *name = torsh_timeline_label(sequence->process, value->name);
	struct event_bytes bytes;
	struct counter *counter;
	uint64_t bits;
	double number;

	/* Some viewers hang on infinite counters. */
	if (!torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	counter = torsh_perfetto_counter(perfetto, sequence, value->name | COUNTER_OF_LABEL,
					 name ? name : "?",
					 PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNSPECIFIED);
	memcpy(&bits, &number, sizeof(bits));
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__COUNTER, counter->track);
	perfetto_eight(&bytes, EVENT_DOUBLE_COUNTER, bits);
	torsh_perfetto_event(perfetto, sequence, &bytes, event->at_ns);
}

/* Put a device's counters: each value holds until the next. */
static void put_sample(struct perfetto *perfetto, struct sequence *sequence,
		       const struct timeline_event *event)
{
	const struct event_counter_sample *sample = &event->event.counter_sample;
	struct counter_point points[COUNTER_VALUES];
	size_t n = torsh_counters_points(&perfetto->counters, sequence->process, sample, points);

	for (size_t i = 0; i < n && torsh_trace_has(perfetto->trace, sample->begin); i++) {
		struct event_bytes bytes;
		struct counter *counter;
		uint64_t bits;
		char name[128];

		snprintf(name, sizeof(name), "GPU %" PRIu32 " %s", sample->device,
			 points[i].metric->field);
		counter = torsh_perfetto_counter(perfetto, sequence,
						 points[i].key | COUNTER_OF_DEVICE, name,
						 PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNSPECIFIED);
		memcpy(&bits, &points[i].value, sizeof(bits));
		perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__COUNTER, counter->track);
		perfetto_eight(&bytes, EVENT_DOUBLE_COUNTER, bits);
		torsh_perfetto_event(perfetto, sequence, &bytes, sample->begin);
	}
}

static void put_mark(struct perfetto *perfetto, struct sequence *sequence,
		     const struct timeline_event *event)
{
	uint64_t track = torsh_perfetto_thread_track(perfetto, sequence, event->thread);
	uint64_t name = torsh_perfetto_name(perfetto, sequence, event->event.mark.name);
	struct event_bytes bytes;

	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__INSTANT, track);
	perfetto_field(&bytes, EVENT_NAME, name);
	perfetto_field(&bytes, EVENT_CATEGORY, CATEGORY_MARK);
	torsh_perfetto_event(perfetto, sequence, &bytes, event->at_ns);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct perfetto *perfetto = context;
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, process);

	const struct collective_call *awaited =
		torsh_collective_calls_see(&perfetto->calls, process, event, innermost);

	torsh_counters_see(&perfetto->counters, process, &event->event);
	torsh_perfetto_see_nccl(perfetto, sequence, event);
	if (event->event.id == EVENT_TENSOR)
		put_tensor(perfetto, sequence, event);
	else if (event->event.id == EVENT_COUNTER_SAMPLE)
		put_sample(perfetto, sequence, event);
	else if (event->event.id == EVENT_PYTHON_GC)
		torsh_perfetto_put_gc(perfetto, sequence, event, innermost);
	else if (event->event.id == EVENT_LIBRARY_CALL)
		torsh_perfetto_put_library_call(perfetto, process, event, innermost);
	else if (awaited)
		torsh_perfetto_put_wait(perfetto, sequence, event, innermost, awaited);
	else if (!torsh_trace_has(perfetto->trace, event->at_ns))
		return;
	else if (event->event.id == EVENT_VALUE)
		put_value(perfetto, sequence, event);
	else if (event->event.id == EVENT_MARK)
		put_mark(perfetto, sequence, event);
}

static void see_sample(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct perfetto *perfetto = context;

	(void)around;
	if (torsh_trace_has(perfetto->trace, event->at_ns))
		torsh_perfetto_put_cpu_sample(perfetto, torsh_perfetto_sequence(perfetto, process),
					      event);
}

static int write_perfetto(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .sample = see_sample};
	struct trace_merge *merge = trace->merge;
	struct perfetto perfetto = {.trace = trace,
				    .output = trace->output,
				    .forward = torsh_forward_create(),
				    .n_tracks = merge ? merge->n_tracks : 0};
	uint32_t n_before = merge ? merge->n_sequences : 0;
	int rc;

	perfetto.sequences =
		torsh_need_items(NULL, 0, trace->n_processes, sizeof(*perfetto.sequences));
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_perfetto_start(&perfetto, &perfetto.sequences[i], trace->processes[i],
				     n_before + (uint32_t)i + 1);
	if (merge)
		torsh_perfetto_put_calls(&perfetto, &perfetto.sequences[0]);
	torsh_perfetto_devices_create(&perfetto);
	rc = torsh_trace_walk(trace, &visitor, &torsh_perfetto_device_visitor, &perfetto);
	torsh_perfetto_devices_destroy(&perfetto);
	torsh_perfetto_end_nccl(&perfetto);
	torsh_collective_calls_free(&perfetto.calls);
	if (merge) {
		merge->n_tracks = perfetto.n_tracks;
		merge->n_sequences += (uint32_t)trace->n_processes;
	}
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_perfetto_free(&perfetto.sequences[i]);
	free(perfetto.sequences);
	torsh_counters_destroy(&perfetto.counters);
	torsh_forward_destroy(perfetto.forward);
	return rc;
}

const struct trace_format torsh_trace_perfetto = {
	.name = "perfetto", .ending = ".pftrace", .is_binary = true, .write = write_perfetto};
