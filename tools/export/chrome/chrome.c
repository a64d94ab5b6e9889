/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Chrome's JSON in the dialect of PyTorch's Kineto, for HTA, TensorBoard's plugin, chrome://tracing
 * and Perfetto: an event a line, times in microseconds since baseTimeNanoseconds. Spans of a thread
 * nest strictly; those that don't are asynchronous events. Streams; what is held are labels as they
 * are printed, and the open spans.
 */
#include "tools/export/chrome/chrome.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/chrome/chrome_collective.h"

static const char *inputs_of(struct chrome *chrome, struct string_cache *strings, uint32_t label)
{
	if (!label || label > strings->process->n_functions)
		return "";
	if (!strings->inputs[label]) {
		torsh_inputs_parse(&chrome->inputs, torsh_timeline_label(strings->process, label));
		strings->inputs[label] = torsh_chrome_inputs(&chrome->inputs);
	}
	return strings->inputs[label];
}

/* ---- pieces of an event ---------------------------------------------------------------------- */

char *torsh_chrome_begin(struct chrome *chrome, const char *kind, const char *prefix,
			 const char *name, const char *thread, uint64_t at_ns)
{
	char *at = torsh_stream_reserve(chrome->output, STREAM_RESERVE_MAX);

	at = PUT(at, ",\n{\"ph\":");
	at = torsh_put_text(at, kind);
	at = PUT(at, ",\"name\":\"");
	at = torsh_put_text(at, prefix);
	at = torsh_put_text(at, name);
	at = PUT(at, "\",");
	at = torsh_put_text(at, thread);
	at = PUT(at, ",\"ts\":");
	return torsh_digits_us(at, at_ns);
}

void torsh_chrome_end(struct chrome *chrome, char *at)
{
	at = PUT(at, "}");
	torsh_stream_commit(chrome->output, at);
}

char *torsh_chrome_put_text(char *at, const char *name, const char *text)
{
	size_t n_name = strlen(name), n = strlen(text);

	if (!n)
		return at;
	at = PUT(at, ",\"");
	memcpy(at, name, n_name);
	at = PUT(at + n_name, "\":\"");
	memcpy(at, text, n);
	return PUT(at + n, "\"");
}

/* Which processes it connects, and how much it moves. */
static char *put_collective(char *at, struct chrome *chrome, const struct span *span)
{
	struct collective collective;
	char *text;

	if (!torsh_collectives_read(&chrome->collectives, span, &collective))
		return at;
	text = torsh_chrome_collective(&collective);
	if (strlen(text) <= LABEL_BYTES_MAX)
		at = torsh_put_text(PUT(at, ","), text);
	free(text);
	return at;
}

static char *put_operator_args(char *at, struct chrome *chrome, struct string_cache *strings,
			       const struct span *span)
{
	const char *inputs = inputs_of(chrome, strings, span->inputs);
	size_t n_inputs = strlen(inputs);

	at = NUMBER(at, "\"External id\":", span->ordinal + 1);
	at = NUMBER(at, ",\"Record function id\":", span->record);
	at = NUMBER(at, ",\"Ev Idx\":", span->ordinal);
	if (span->sequence != OP_NO_SEQUENCE) {
		at = NUMBER(at, ",\"Sequence number\":", span->sequence);
		at = NUMBER(at, ",\"Fwd thread id\":",
			    span->scope == OP_BACKWARD ? span->forward_thread : 0);
	}
	if (span->overload) {
		at = PUT(at, ",\"Overload Name\":\"");
		at = torsh_put_text(at, torsh_string_cache_name(strings, span->overload));
		at = PUT(at, "\"");
	}
	if (n_inputs && n_inputs <= LABEL_BYTES_MAX) {
		at = PUT(at, ",");
		memcpy(at, inputs, n_inputs);
		at += n_inputs;
	}
	at = put_collective(at, chrome, span);
	if (span->module) {
		at = PUT(at, ",\"Module Hierarchy\":\"");
		at = torsh_put_text(at, torsh_string_cache_name(strings, span->module));
		at = PUT(at, "\"");
	}
	return at;
}

static char *put_module_args(char *at, const struct span *span)
{
	const struct span *outer = torsh_span_outer_module(span);

	at = NUMBER(at, "\"Python id\":", span->ordinal + 1);
	if (outer)
		at = NUMBER(at, ",\"Python parent id\":", outer->ordinal + 1);
	return NUMBER(at, ",\"Python module id\":", span->name);
}

static char *put_range_args(char *at, struct string_cache *strings, const struct span *span)
{
	static const char *const sources[] = {"torsh", "NVTX", "ITT", "module"};
	double payload;

	at += sprintf(at, "\"Source\":\"%s\"",
		      span->source < sizeof(sources) / sizeof(*sources) ? sources[span->source]
									: "?");
	if (span->domain) {
		at = PUT(at, ",\"Domain\":\"");
		at = torsh_put_text(at, torsh_string_cache_name(strings, span->domain));
		at = PUT(at, "\"");
	}
	if (span->category) {
		at = PUT(at, ",\"Category\":\"");
		at = torsh_put_text(at, torsh_string_cache_name(strings, span->category));
		at = PUT(at, "\"");
	}
	if (torsh_trace_payload(span->payload_type, span->payload, &payload))
		at += sprintf(at, ",\"Payload\":%.17g", payload);
	return at;
}

static char *put_args(char *at, struct chrome *chrome, struct string_cache *strings,
		      const struct span *span)
{
	at = PUT(at, ",\"args\":{");
	if (span->kind == SPAN_OPERATOR)
		at = put_operator_args(at, chrome, strings, span);
	else if (span->is_module)
		at = put_module_args(at, span);
	else
		at = put_range_args(at, strings, span);
	at = torsh_chrome_put_text(at, "Call stack",
				   torsh_string_cache_stack(strings, span->stack));
	return PUT(at, "}");
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void put_nested(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	const char *kind = span->is_module ? "\"X\",\"cat\":\"python_function\""
			   : span->kind == SPAN_RANGE || span->scope == OP_USER
				   ? "\"X\",\"cat\":\"user_annotation\""
				   : "\"X\",\"cat\":\"cpu_op\"";
	char *at = torsh_chrome_begin(chrome, kind, span->is_module ? "nn.Module: " : "",
				      torsh_string_cache_name(strings, span->name),
				      torsh_string_cache_thread(strings, span->thread),
				      span->start_ns);

	at = PUT(at, ",\"dur\":");
	at = torsh_digits_us(at, span->end_ns - span->start_ns);
	torsh_chrome_end(chrome, put_args(at, chrome, strings, span));
}

/* A pair of begin and end that viewers show on a track of its own. */
static void put_async(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	const char *name = torsh_string_cache_name(strings, span->name),
		   *thread = torsh_string_cache_thread(strings, span->thread);
	char *at = torsh_chrome_begin(chrome, "\"b\",\"cat\":\"async\"", "", name, thread,
				      span->start_ns);

	at += sprintf(at, ",\"id\":\"%" PRIu32 ".%" PRIu64 "\"", span->process->number,
		      span->ordinal);
	torsh_chrome_end(chrome, put_args(at, chrome, strings, span));
	at = torsh_chrome_begin(chrome, "\"e\",\"cat\":\"async\"", "", name, thread, span->end_ns);
	at += sprintf(at, ",\"id\":\"%" PRIu32 ".%" PRIu64 "\"", span->process->number,
		      span->ordinal);
	torsh_chrome_end(chrome, at);
}

/*
 * An arrow from a forward operator to its backward. Both slices are written: arrows bind to what
 * came before.
 */
static void put_arrow(struct chrome *chrome, struct string_cache *strings, const struct span *span)
{
	struct forward forward;
	char *at;

	if (!torsh_forward_take(chrome->forward, span, &forward) ||
	    !torsh_trace_has(chrome->trace, forward.start_ns))
		return;
	chrome->n_flows++;
	at = torsh_chrome_begin(chrome, "\"s\",\"cat\":\"fwdbwd\"", "", "fwdbwd",
				torsh_string_cache_thread(strings, forward.thread),
				forward.start_ns);
	torsh_chrome_end(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
	at = torsh_chrome_begin(chrome, "\"f\",\"cat\":\"fwdbwd\",\"bp\":\"e\"", "", "fwdbwd",
				torsh_string_cache_thread(strings, span->thread), span->start_ns);
	torsh_chrome_end(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
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

/* The allocator's own sum of allocations or, without it, the sum of its events. */
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
	/* What was given out before the recording began is freed in it. */
	return of->held_bytes[device] > 0 ? (uint64_t)of->held_bytes[device] : 0;
}

static void put_tensor(struct chrome *chrome, struct chrome_process *of,
		       const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	uint64_t held = held_bytes(of, tensor);
	uint32_t type = tensor->device >> 8;
	char *at;

	if (!torsh_trace_has(chrome->trace, event->at_ns))
		return;
	at = torsh_chrome_begin(chrome, "\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\"", "",
				"[memory]", torsh_string_cache_thread(&of->strings, event->thread),
				event->at_ns);
	at = NUMBER(at, ",\"args\":{\"Total Reserved\":", tensor->reserved);
	at = NUMBER(at, ",\"Total Allocated\":", held);
	at = tensor->is_free ? NUMBER(at, ",\"Bytes\":-", tensor->bytes)
			     : NUMBER(at, ",\"Bytes\":", tensor->bytes);
	at = NUMBER(at, ",\"Addr\":", tensor->address);
	at = NUMBER(at, ",\"Device Type\":", type);
	/* PyTorch numbers no CPU. */
	at = type ? NUMBER(at, ",\"Device Id\":", tensor->device & 0xff)
		  : PUT(at, ",\"Device Id\":-1");
	at = NUMBER(at, ",\"Ev Idx\":", chrome->n_memory++);
	torsh_chrome_end(chrome, PUT(at, "}"));
}

static void put_out_of_memory(struct chrome *chrome, struct string_cache *strings,
			      const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	char *at = torsh_chrome_begin(
		chrome, "\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\"", "", "[OutOfMemory]",
		torsh_string_cache_thread(strings, event->thread), event->at_ns);

	at = NUMBER(at, ",\"args\":{\"Total Reserved\":", failed->reserved);
	at = NUMBER(at, ",\"Total Allocated\":", failed->allocated);
	at = NUMBER(at, ",\"Bytes\":", failed->bytes);
	at = NUMBER(at, ",\"Device Type\":", failed->device >> 8);
	at = NUMBER(at, ",\"Device Id\":", failed->device & 0xff);
	torsh_chrome_end(chrome, PUT(at, "}"));
}

static void put_mark(struct chrome *chrome, struct string_cache *strings,
		     const struct timeline_event *event)
{
	const struct event_mark *mark = &event->event.mark;
	char *at =
		torsh_chrome_begin(chrome, "\"i\",\"s\":\"t\",\"cat\":\"mark\"", "",
				   torsh_string_cache_name(strings, mark->name),
				   torsh_string_cache_thread(strings, event->thread), event->at_ns);

	torsh_chrome_end(chrome, at);
}

static void put_value(struct chrome *chrome, struct string_cache *strings,
		      const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	double number;
	char *at;

	/* Viewers hang on counters that are infinite. */
	if (!torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	at = torsh_chrome_begin(chrome, "\"C\",\"cat\":\"value\"", "",
				torsh_string_cache_name(strings, value->name),
				torsh_string_cache_thread(strings, event->thread), event->at_ns);
	at += sprintf(at, ",\"args\":{\"value\":%.17g}", number);
	torsh_chrome_end(chrome, at);
}

/* A device's counters: each value is that of the time until the next. */
static void put_sample(struct chrome *chrome, const struct recorded_process *process,
		       struct string_cache *strings, const struct timeline_event *event)
{
	const struct event_counter_sample *sample = &event->event.counter_sample;
	struct counter_point points[COUNTER_VALUES];
	size_t n = torsh_counters_points(&chrome->counters, process, sample, points);
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "GPU %" PRIu32 " ", sample->device);
	for (size_t i = 0; i < n && torsh_trace_has(chrome->trace, sample->begin); i++) {
		char *at = torsh_chrome_begin(
			chrome, "\"C\",\"cat\":\"gpu_counter\"", prefix,
			torsh_string_cache_name(strings, points[i].metric->field_label),
			torsh_string_cache_thread(strings, event->thread), sample->begin);

		at += sprintf(at, ",\"args\":{\"value\":%.17g}", points[i].value);
		torsh_chrome_end(chrome, at);
	}
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct chrome *chrome = context;
	struct chrome_process *of = torsh_chrome_process(chrome, process);

	(void)innermost;
	torsh_counters_see(&chrome->counters, process, &event->event);
	if (event->event.id == EVENT_TENSOR)
		put_tensor(chrome, of, event);
	else if (event->event.id == EVENT_COUNTER_SAMPLE)
		put_sample(chrome, process, &of->strings, event);
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

static int write_chrome(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	struct chrome chrome = {
		.trace = trace, .output = trace->output, .forward = torsh_forward_create()};
	int rc;

	chrome.processes = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*chrome.processes));
	torsh_chrome_devices_create(&chrome);
	torsh_chrome_put_header(trace);
	for (size_t i = 0; i < trace->n_processes; i++) {
		torsh_string_cache_create(&chrome.processes[i].strings, trace, trace->processes[i]);
		torsh_chrome_put_process(trace, trace->processes[i]);
	}
	rc = torsh_trace_walk(trace, &visitor, &torsh_chrome_device_visitor, &chrome);
	torsh_chrome_devices_destroy(&chrome);
	torsh_stream_text(trace->output, "\n],\n\"traceName\":\"");
	if (trace->path) {
		char *name = torsh_trace_escape(trace->path);

		torsh_stream_text(trace->output, name);
		free(name);
	}
	torsh_stream_text(trace->output, "\"\n}\n");
	for (size_t i = 0; i < trace->n_processes; i++) {
		torsh_string_cache_free(&chrome.processes[i].strings);
		free(chrome.processes[i].held_bytes);
	}
	free(chrome.processes);
	torsh_groups_free(&chrome.collectives.groups);
	torsh_counters_destroy(&chrome.counters);
	torsh_forward_destroy(chrome.forward);
	return rc;
}

const struct trace_format torsh_trace_chrome = {.name = "chrome",
						.ending = ".json",
						.is_of_one_rank = true,
						.needs = TRACE_NEEDS_EVENTS,
						.write = write_chrome};
