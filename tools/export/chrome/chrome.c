/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Chrome's JSON in the dialect of PyTorch's Kineto, for HTA, TensorBoard's plugin,
 * chrome://tracing and Perfetto: one event per line, times in microseconds since
 * baseTimeNanoseconds. Spans of a thread nest strictly; those that don't are asynchronous events.
 * Streams: it holds only the printed forms of labels, and the open spans.
 */
#include "tools/export/chrome/chrome.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/chrome/chrome_collective.h"

static const char *inputs_of(struct chrome *chrome, struct string_cache *strings, uint32_t label)
{
	if (!label || label > strings->process->tables->n_functions)
		return "";
	if (!strings->inputs[label]) {
		torsh_inputs_parse(&chrome->inputs, torsh_timeline_label(strings->process, label));
		strings->inputs[label] = torsh_chrome_inputs(&chrome->inputs);
	}
	return strings->inputs[label];
}

/* ---- pieces of an event ---------------------------------------------------------------------- */

struct json_writer *torsh_chrome_begin(struct chrome *chrome, const char *phase,
				       const char *category, const char *prefix, const char *name,
				       const char *thread, uint64_t at_ns)
{
	struct json_writer *json = &chrome->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_escaped(json, "ph", phase);
	/* scope of an instant: its thread */
	if (*phase == 'i')
		torsh_json_put_escaped(json, "s", "t");
	torsh_json_put_escaped(json, "cat", category);
	/* bind an arrow's end to the enclosing slice */
	if (*phase == 'f')
		torsh_json_put_escaped(json, "bp", "e");
	if (*prefix) {
		torsh_json_begin_text(json, "name");
		torsh_json_append(json, prefix, strlen(prefix));
		torsh_json_append(json, name, strlen(name));
		torsh_json_end_text(json);
	} else {
		torsh_json_put_escaped(json, "name", name);
	}
	torsh_json_put_members(json, thread);
	torsh_json_put_us(json, "ts", torsh_trace_time(chrome->trace, at_ns));
	return json;
}

void torsh_chrome_put_duration(struct chrome *chrome, uint64_t begin_ns, uint64_t end_ns)
{
	torsh_json_put_us(&chrome->json, "dur",
			  torsh_trace_time(chrome->trace, end_ns) -
				  torsh_trace_time(chrome->trace, begin_ns));
}

void torsh_chrome_put_text(struct json_writer *json, const char *name, const char *text)
{
	if (*text)
		torsh_json_put_escaped(json, name, text);
}

/* Put the ranks that it connects, and how much it moves. */
static void put_collective(struct chrome *chrome, const struct span *span)
{
	struct collective collective;
	char *members;

	if (!torsh_collectives_read(&chrome->collectives, span, &collective))
		return;
	members = torsh_chrome_collective(&collective);
	if (strlen(members) <= LABEL_BYTES_MAX)
		torsh_json_put_members(&chrome->json, members);
	free(members);
}

/* Put a member with a label's text, if there is one. */
static void put_label(struct json_writer *json, const char *name, struct string_cache *strings,
		      uint32_t label)
{
	if (label)
		torsh_json_put_escaped(json, name, torsh_string_cache_name(strings, label));
}

static void put_operator_args(struct chrome *chrome, struct string_cache *strings,
			      const struct span *span)
{
	struct json_writer *json = &chrome->json;
	const char *inputs = inputs_of(chrome, strings, span->inputs);

	torsh_json_put_u64(json, "External id", span->ordinal + 1);
	torsh_json_put_u64(json, "Record function id", span->record);
	torsh_json_put_u64(json, "Ev Idx", span->ordinal);
	if (span->sequence != OP_NO_SEQUENCE) {
		torsh_json_put_u64(json, "Sequence number", span->sequence);
		torsh_json_put_u64(json, "Fwd thread id",
				   span->scope == OP_BACKWARD ? span->forward_thread : 0);
	}
	put_label(json, "Overload Name", strings, span->overload);
	if (strlen(inputs) <= LABEL_BYTES_MAX)
		torsh_json_put_members(json, inputs);
	put_collective(chrome, span);
	put_label(json, "Module Hierarchy", strings, span->module);
}

static void put_module_args(struct json_writer *json, const struct span *span)
{
	const struct span *outer = torsh_span_outer_module(span);

	torsh_json_put_u64(json, "Python id", span->ordinal + 1);
	if (outer)
		torsh_json_put_u64(json, "Python parent id", outer->ordinal + 1);
	torsh_json_put_u64(json, "Python module id", span->name);
}

static void put_range_args(struct json_writer *json, struct string_cache *strings,
			   const struct span *span)
{
	static const char *const sources[] = {"torsh", "NVTX", "ITT", "module"};
	bool has_source = span->source < sizeof(sources) / sizeof(*sources);
	double payload;

	torsh_json_put_escaped(json, "Source", has_source ? sources[span->source] : "?");
	put_label(json, "Domain", strings, span->domain);
	put_label(json, "Category", strings, span->category);
	if (torsh_trace_payload(span->payload_type, span->payload, &payload))
		torsh_json_put_rounded(json, "Payload", payload, DBL_DECIMAL_DIG);
}

static void put_args(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	struct json_writer *json = &chrome->json;

	torsh_json_begin_object(json, "args");
	if (span->kind == SPAN_OPERATOR)
		put_operator_args(chrome, strings, span);
	else if (span->is_module)
		put_module_args(json, span);
	else
		put_range_args(json, strings, span);
	torsh_chrome_put_text(json, "Call stack", torsh_string_cache_stack(strings, span->stack));
	torsh_json_end_object(json);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void put_nested(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	const char *category = span->is_module ? "python_function"
			       : span->kind == SPAN_RANGE || span->scope == OP_USER
				       ? "user_annotation"
				       : "cpu_op";
	struct json_writer *json = torsh_chrome_begin(
		chrome, "X", category, span->is_module ? "nn.Module: " : "",
		torsh_string_cache_name(strings, span->name),
		torsh_string_cache_thread(strings, span->thread), span->start_ns);

	torsh_chrome_put_duration(chrome, span->start_ns, span->end_ns);
	put_args(chrome, strings, span);
	torsh_json_end_object(json);
}

static void put_async_id(const struct chrome *chrome, struct json_writer *json,
			 const struct span *span)
{
	/* Processes of several recordings have the same numbers. */
	if (chrome->trace->merge)
		torsh_json_put_format(json, "id", "%" PRIu32 ".%" PRIu64, span->process->pid,
				      span->ordinal);
	else
		torsh_json_put_format(json, "id", "%" PRIu32 ".%" PRIu64, span->process->number,
				      span->ordinal);
}

/* Put a pair of begin and end, which viewers show on a separate track. */
static void put_async(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	const char *name = torsh_string_cache_name(strings, span->name),
		   *thread = torsh_string_cache_thread(strings, span->thread);
	struct json_writer *json =
		torsh_chrome_begin(chrome, "b", "async", "", name, thread, span->start_ns);

	put_async_id(chrome, json, span);
	put_args(chrome, strings, span);
	torsh_json_end_object(json);
	torsh_chrome_begin(chrome, "e", "async", "", name, thread, span->end_ns);
	put_async_id(chrome, json, span);
	torsh_json_end_object(json);
}

void torsh_chrome_put_arrow_end(struct chrome *chrome, const char *phase, const char *name,
				const char *thread, uint64_t at_ns)
{
	struct json_writer *json = torsh_chrome_begin(chrome, phase, name, "", name, thread, at_ns);

	torsh_json_put_u64(json, "id", chrome->n_flows);
	torsh_json_end_object(json);
}

/*
 * Put an arrow from a forward operator to its backward. Both slices are already written, because
 * arrows bind to earlier events.
 */
static void put_arrow(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	struct forward forward;

	if (!torsh_forward_take(chrome->forward, span, &forward) ||
	    !torsh_trace_has(chrome->trace, forward.start_ns))
		return;
	chrome->n_flows++;
	torsh_chrome_put_arrow_end(chrome, "s", "fwdbwd",
				   torsh_string_cache_thread(strings, forward.thread),
				   forward.start_ns);
	torsh_chrome_put_arrow_end(chrome, "f", "fwdbwd",
				   torsh_string_cache_thread(strings, span->thread),
				   span->start_ns);
}

static void see_begin(void *context, struct span *span)
{
	struct chrome *chrome = context;

	torsh_forward_add(chrome->forward, span);
}

static void see_end(void *context, struct span *span)
{
	struct chrome *chrome = context;
	struct chrome_process *of = torsh_chrome_process(chrome, span->process);

	if (!torsh_trace_has(chrome->trace, span->start_ns))
		return;
	if (span->is_async) {
		put_async(chrome, &of->strings, span);
		return;
	}
	put_nested(chrome, &of->strings, span);
	put_arrow(chrome, &of->strings, span);
}

/* ---- other events ---------------------------------------------------------------------------- */

/* Returns the allocator's own sum of allocations or, without it, the sum of its events. */
static uint64_t held_bytes(struct chrome_process *of, const struct event_tensor *tensor)
{
	size_t device = tensor->device & 0xffff;

	if (device >= of->n_devices) {
		of->held_bytes = torsh_need_items(of->held_bytes, of->n_devices, device + 1,
						  sizeof(*of->held_bytes));
		of->n_devices = device + 1;
	}
	of->held_bytes[device] +=
		tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	if (tensor->allocated)
		return tensor->allocated;
	/* Memory that was allocated before the recording may be freed in it. */
	return of->held_bytes[device] > 0 ? (uint64_t)of->held_bytes[device] : 0;
}

/* Put the bytes of an allocation, negative for a free. */
static void put_change(struct json_writer *json, const struct event_tensor *tensor)
{
	/* A free of 0 bytes is -0, as Kineto writes it. */
	if (tensor->is_free)
		torsh_json_put_negative(json, "Bytes", tensor->bytes);
	else
		torsh_json_put_u64(json, "Bytes", tensor->bytes);
}

static void put_tensor(struct chrome *chrome, struct chrome_process *of,
		       const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	uint64_t held = held_bytes(of, tensor);
	uint32_t type = tensor->device >> 8;
	struct json_writer *json;

	if (!torsh_trace_has(chrome->trace, event->at_ns))
		return;
	json = torsh_chrome_begin(chrome, "i", "cpu_instant_event", "", "[memory]",
				  torsh_string_cache_thread(&of->strings, event->thread),
				  event->at_ns);
	torsh_json_begin_object(json, "args");
	torsh_json_put_u64(json, "Total Reserved", tensor->reserved);
	torsh_json_put_u64(json, "Total Allocated", held);
	put_change(json, tensor);
	torsh_json_put_u64(json, "Addr", tensor->address);
	torsh_json_put_u64(json, "Device Type", type);
	/* PyTorch has no device number for the CPU. */
	torsh_json_put_i64(json, "Device Id", type ? (int64_t)(tensor->device & 0xff) : -1);
	torsh_json_put_u64(json, "Ev Idx", chrome->n_memory++);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

static void put_out_of_memory(struct chrome *chrome, struct string_cache *strings,
			      const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	struct json_writer *json =
		torsh_chrome_begin(chrome, "i", "cpu_instant_event", "", "[OutOfMemory]",
				   torsh_string_cache_thread(strings, event->thread), event->at_ns);

	torsh_json_begin_object(json, "args");
	torsh_json_put_u64(json, "Total Reserved", failed->reserved);
	torsh_json_put_u64(json, "Total Allocated", failed->allocated);
	torsh_json_put_u64(json, "Bytes", failed->bytes);
	torsh_json_put_u64(json, "Device Type", failed->device >> 8);
	torsh_json_put_u64(json, "Device Id", failed->device & 0xff);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

static void put_mark(struct chrome *chrome, struct string_cache *strings,
		     const struct timeline_event *event)
{
	torsh_chrome_begin(chrome, "i", "mark", "",
			   torsh_string_cache_name(strings, event->event.mark.name),
			   torsh_string_cache_thread(strings, event->thread), event->at_ns);
	torsh_json_end_object(&chrome->json);
}

/* Put the args of a counter, and end it. */
static void end_counter(struct json_writer *json, double value)
{
	torsh_json_begin_object(json, "args");
	torsh_json_put_rounded(json, "value", value, DBL_DECIMAL_DIG);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

static void put_value(struct chrome *chrome, struct string_cache *strings,
		      const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	double number;

	/* Some viewers hang on infinite counters. */
	if (!torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	end_counter(torsh_chrome_begin(
			    chrome, "C", "value", "", torsh_string_cache_name(strings, value->name),
			    torsh_string_cache_thread(strings, event->thread), event->at_ns),
		    number);
}

/* Put a device's counters: each value holds until the next. */
static void put_sample(struct chrome *chrome, const struct recorded_process *process,
		       struct string_cache *strings, const struct timeline_event *event)
{
	const struct event_counter_sample *sample = &event->event.counter_sample;
	struct counter_point points[COUNTER_VALUES];
	size_t n = torsh_counters_points(&chrome->counters, process, sample, points);
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "GPU %" PRIu32 " ", sample->device);
	for (size_t i = 0; i < n && torsh_trace_has(chrome->trace, sample->begin); i++) {
		const char *name = torsh_string_cache_name(strings, points[i].metric->field_label);

		end_counter(torsh_chrome_begin(chrome, "C", "gpu_counter", prefix, name,
					       torsh_string_cache_thread(strings, event->thread),
					       sample->begin),
			    points[i].value);
	}
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct chrome *chrome = context;
	struct chrome_process *of = torsh_chrome_process(chrome, process);

	const struct collective_call *awaited =
		torsh_collective_calls_see(&chrome->calls, process, event, innermost);

	torsh_counters_see(&chrome->counters, process, &event->event);
	torsh_chrome_see_nccl(chrome, process, event);
	if (event->event.id == EVENT_TENSOR)
		put_tensor(chrome, of, event);
	else if (event->event.id == EVENT_COUNTER_SAMPLE)
		put_sample(chrome, process, &of->strings, event);
	else if (event->event.id == EVENT_PYTHON_GC)
		torsh_chrome_put_gc(chrome, &of->strings, event);
	else if (event->event.id == EVENT_LIBRARY_CALL)
		torsh_chrome_put_library_call(chrome, process, event);
	else if (awaited)
		torsh_chrome_put_wait(chrome, &of->strings, event, awaited);
	else if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&chrome->collectives.groups, process, &event->event.process_group);
	else if (!torsh_trace_has(chrome->trace, event->at_ns))
		return;
	else if (event->event.id == EVENT_OUT_OF_MEMORY)
		put_out_of_memory(chrome, &of->strings, event);
	else if (event->event.id == EVENT_MARK)
		put_mark(chrome, &of->strings, event);
	else if (event->event.id == EVENT_VALUE)
		put_value(chrome, &of->strings, event);
}

static void see_sample(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct chrome *chrome = context;

	(void)around;
	if (torsh_trace_has(chrome->trace, event->at_ns))
		torsh_chrome_keep_sample(chrome, process, event);
}

/* Begin the file, or go on with it. */
static void begin_file(struct chrome *chrome)
{
	struct trace *trace = chrome->trace;

	if (trace->merge && !trace->merge->is_first) {
		chrome->json = trace->merge->json;
		chrome->n_flows = trace->merge->n_flows;
		chrome->samples = trace->merge->samples;
		return;
	}
	torsh_stream_begin_json(trace->output, &chrome->json);
	torsh_chrome_put_header(&chrome->json, trace);
}

/* End the file, or leave it to the next part. */
static void end_file(struct chrome *chrome)
{
	struct trace *trace = chrome->trace;

	if (trace->merge && !trace->merge->is_last) {
		trace->merge->json = chrome->json;
		trace->merge->n_flows = chrome->n_flows;
		trace->merge->samples = chrome->samples;
		return;
	}
	torsh_json_end_array(&chrome->json);
	torsh_chrome_put_samples(chrome);
	torsh_json_put_text(&chrome->json, "traceName", trace->path ? trace->path : "");
	torsh_json_end_object(&chrome->json);
	torsh_stream_end_json(trace->output, &chrome->json);
}

static int write_chrome(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .sample = see_sample};
	struct chrome chrome = {.trace = trace, .forward = torsh_forward_create()};
	int rc;

	chrome.processes = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*chrome.processes));
	torsh_chrome_devices_create(&chrome);
	begin_file(&chrome);
	for (size_t i = 0; i < trace->n_processes; i++) {
		torsh_string_cache_create(&chrome.processes[i].strings, trace, trace->processes[i]);
		torsh_chrome_put_process(&chrome.json, trace, trace->processes[i]);
	}
	rc = torsh_trace_walk(trace, &visitor, &torsh_chrome_device_visitor, &chrome);
	torsh_chrome_devices_destroy(&chrome);
	torsh_chrome_end_nccl(&chrome);
	if (trace->merge)
		torsh_chrome_put_calls(&chrome, trace->processes[0]);
	end_file(&chrome);
	for (size_t i = 0; i < trace->n_processes; i++) {
		torsh_string_cache_free(&chrome.processes[i].strings);
		free(chrome.processes[i].held_bytes);
	}
	free(chrome.processes);
	torsh_groups_free(&chrome.collectives.groups);
	torsh_collective_calls_free(&chrome.calls);
	torsh_counters_destroy(&chrome.counters);
	torsh_forward_destroy(chrome.forward);
	return rc;
}

const struct trace_format torsh_trace_chrome = {.name = "chrome",
						.ending = ".json",
						.is_of_one_rank = true,
						.has_samples = true,
						.needs = TRACE_NEEDS_EVENTS,
						.write = write_chrome};
