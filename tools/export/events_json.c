/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The events of a timeline as JSON, for custom programs: one object with an "events" array of one
 * line per event; a span is written when it ends. Schema: tools/schema/events.json. Streams.
 */
#include <float.h>
#include <stdlib.h>

#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/export/events_json_head.h"
#include "tools/export/string_cache.h"
#include "tools/memory/tensors.h"
#include "tools/ops/operators.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/prepass/process_groups.h"

static const char *const sources[] = {"torsh", "nvtx", "itt", "module"};
static const char *const kinds[] = {"scalar", "counter", "sample"};

/* The name at an index, or null. */
#define NAME_OF(names, i) ((i) < sizeof(names) / sizeof(*(names)) ? (names)[i] : "unknown")

struct events {
	struct trace *trace;
	struct json_writer json;
	struct string_cache *strings, *last;
	struct flops_book *book;
	struct collectives collectives;
	struct collective_calls calls;
};

static struct string_cache *find_strings(struct events *events,
					 const struct recorded_process *process)
{
	struct string_cache *strings = events->last;

	if (strings && strings->process == process)
		return strings;
	for (strings = events->strings; strings->process != process; strings++)
		;
	return events->last = strings;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct json_writer *begin_of_process(struct events *events, const char *type,
					    struct string_cache *strings)
{
	struct json_writer *json = &events->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_escaped(json, "type", type);
	torsh_json_put_u64(json, "process", strings->process->number);
	return json;
}

static struct json_writer *begin_event(struct events *events, const char *type,
				       struct string_cache *strings, uint32_t thread)
{
	struct json_writer *json = begin_of_process(events, type, strings);

	torsh_json_put_members(json, torsh_string_cache_thread(strings, thread));
	return json;
}

/* Put a text that is escaped already, or null without one. */
static inline void put_text_or_null(struct json_writer *json, const char *name, const char *text)
{
	if (text && *text)
		torsh_json_put_escaped(json, name, text);
	else
		torsh_json_put_null(json, name);
}

static void put_label(struct json_writer *json, const char *name, struct string_cache *strings,
		      uint32_t label)
{
	put_text_or_null(json, name, label ? torsh_string_cache_name(strings, label) : NULL);
}

static void put_payload(struct json_writer *json, const char *name, uint32_t type, uint64_t payload)
{
	double number;

	if (torsh_trace_payload(type, payload, &number))
		torsh_json_put_rounded(json, name, number, DBL_DECIMAL_DIG);
	else
		torsh_json_put_null(json, name);
}

static const char *inputs_of(struct string_cache *strings, uint32_t label)
{
	if (!label || label > strings->process->tables->n_functions)
		return NULL;
	if (!strings->inputs[label]) {
		const char *text = torsh_timeline_label(strings->process, label);

		strings->inputs[label] = torsh_json_escape(text ? text : "");
	}
	return strlen(strings->inputs[label]) <= LABEL_BYTES_MAX ? strings->inputs[label] : NULL;
}

static void put_stack(struct json_writer *json, struct string_cache *strings, uint32_t stack)
{
	put_text_or_null(json, "stack", torsh_string_cache_stack(strings, stack));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Members that operators and ranges share. */
static void put_span(struct json_writer *json, struct string_cache *strings,
		     const struct span *span)
{
	torsh_json_put_u64(json, "id", span->ordinal);
	put_label(json, "name", strings, span->name);
	torsh_json_put_u64(json, "start_ns", span->start_ns);
	torsh_json_put_u64(json, "end_ns", span->end_ns);
	put_label(json, "module", strings, span->module);
	torsh_json_put_bool(json, "is_async", span->is_async);
	torsh_json_put_bool(json, "is_cut", span->is_cut);
	put_stack(json, strings, span->stack);
}

/* Returns an object, or null. The caller frees it. */
static char *make_collective(const struct collective *collective)
{
	const struct process_group *group = collective->group;
	const struct input *tensor = collective->tensor;
	struct json_writer json;

	torsh_json_open_memory(&json);
	torsh_json_begin_object(&json, NULL);
	torsh_json_put_text_n(&json, "name", collective->name, collective->n_name);
	if (tensor)
		torsh_json_put_text_n(&json, "dtype", tensor->text, tensor->n_type);
	else
		torsh_json_put_null(&json, "dtype");
	torsh_json_put_u64(&json, "in_elements", collective->in_elements);
	torsh_json_put_u64(&json, "out_elements", collective->out_elements);
	torsh_json_put_text(&json, "group", group->name ? group->name : "");
	torsh_json_put_text(&json, "group_description",
			    group->description ? group->description : "");
	torsh_json_put_u64(&json, "group_size", group->n_ranks);
	torsh_json_put_text(&json, "group_ranks", group->ranks ? group->ranks : "");
	torsh_json_end_object(&json);
	return torsh_json_close_memory(&json);
}

static void put_collective(struct json_writer *json, struct events *events, const struct span *span)
{
	struct collective collective;
	char *text = NULL;

	if (torsh_collectives_read(&events->collectives, span, &collective))
		text = make_collective(&collective);
	torsh_json_put_raw(json, "collective",
			   text && strlen(text) <= LABEL_BYTES_MAX ? text : "null");
	free(text);
}

static void put_operator(struct events *events, struct string_cache *strings,
			 const struct span *span, const struct flops *own)
{
	const struct steps *steps = &torsh_prepass_of(events->trace->prepass, span->process)->steps;
	const struct span *outer = torsh_span_outer_operator(span);
	uint64_t duration_ns = span->end_ns - span->start_ns;
	size_t step = torsh_steps_of(steps, span->start_ns, span->thread);
	bool has_sequence = span->sequence != OP_NO_SEQUENCE,
	     has_formula = own->status != FLOPS_NO_FORMULA;
	struct json_writer *json = begin_event(events, "operator", strings, span->thread);

	put_span(json, strings, span);
	put_text_or_null(json, "inputs", inputs_of(strings, span->inputs));
	put_label(json, "overload", strings, span->overload);
	torsh_json_put_u64(json, "self_ns",
			   duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0);
	torsh_json_put_known(json, "outer", outer, outer ? outer->ordinal : 0);
	torsh_json_put_u64(json, "scope", span->scope);
	torsh_json_put_known(json, "sequence", has_sequence, span->sequence);
	torsh_json_put_known(json, "forward_thread", has_sequence && span->forward_thread,
			     span->forward_thread);
	put_collective(json, events, span);
	put_text_or_null(json, "phase", torsh_phase_names[span->phase]);
	torsh_json_put_known(json, "step", step != STEP_NONE,
			     step != STEP_NONE ? steps->items[step].number : 0);
	torsh_json_put_known(json, "flops", has_formula, own->counter);
	torsh_json_put_known(json, "flops_all", has_formula, own->all);
	torsh_json_put_u64(json, "allocated_bytes", span->self_allocated_bytes);
	torsh_json_put_u64(json, "freed_bytes", span->self_freed_bytes);
	torsh_json_end_object(json);
}

static void put_range(struct events *events, struct string_cache *strings, const struct span *span)
{
	struct json_writer *json =
		begin_event(events, span->is_module ? "module" : "range", strings, span->thread);

	put_span(json, strings, span);
	put_label(json, "domain", strings, span->domain);
	put_label(json, "category", strings, span->category);
	put_text_or_null(json, "source", NAME_OF(sources, span->source));
	put_payload(json, "payload", span->payload_type, span->payload);
	torsh_json_end_object(json);
}

static void see_begin(void *context, struct span *span)
{
	struct events *events = context;

	if (span->kind == SPAN_OPERATOR)
		torsh_flops_book_begin(events->book, span);
}

static void see_end(void *context, struct span *span)
{
	struct events *events = context;
	struct flops own = {.status = FLOPS_NO_FORMULA};

	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(events->book, span);
	if (!torsh_trace_has(events->trace, span->start_ns))
		return;
	if (span->kind == SPAN_OPERATOR)
		put_operator(events, find_strings(events, span->process), span, &own);
	else
		put_range(events, find_strings(events, span->process), span);
}

static struct json_writer *begin_moment(struct events *events, const char *type,
					struct string_cache *strings,
					const struct timeline_event *event)
{
	struct json_writer *json = begin_event(events, type, strings, event->thread);

	torsh_json_put_u64(json, "at_ns", event->at_ns);
	return json;
}

static void put_tensor(struct events *events, struct string_cache *strings,
		       const struct timeline_event *event, const struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct json_writer *json = begin_moment(events, "tensor", strings, event);
	char device[32];

	torsh_json_put_hex(json, "address", tensor->address);
	torsh_json_put_u64(json, "bytes", tensor->bytes);
	torsh_json_put_bool(json, "is_free", tensor->is_free);
	put_text_or_null(json, "device", torsh_device_name(tensor->device, device));
	torsh_json_put_known(json, "allocated_bytes", tensor->allocated, tensor->allocated);
	torsh_json_put_known(json, "reserved_bytes", tensor->reserved, tensor->reserved);
	torsh_json_put_known(json, "operator", innermost, innermost ? innermost->ordinal : 0);
	put_stack(json, strings, event->stack);
	torsh_json_end_object(json);
}

static void put_out_of_memory(struct events *events, struct string_cache *strings,
			      const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	struct json_writer *json = begin_moment(events, "out_of_memory", strings, event);
	char device[32];

	torsh_json_put_u64(json, "bytes", failed->bytes);
	put_text_or_null(json, "device", torsh_device_name(failed->device, device));
	torsh_json_put_known(json, "allocated_bytes", failed->allocated, failed->allocated);
	torsh_json_put_known(json, "reserved_bytes", failed->reserved, failed->reserved);
	torsh_json_end_object(json);
}

static void put_mark(struct events *events, struct string_cache *strings,
		     const struct timeline_event *event)
{
	const struct event_mark *mark = &event->event.mark;
	struct json_writer *json = begin_moment(events, "mark", strings, event);

	put_label(json, "name", strings, mark->name);
	put_label(json, "domain", strings, mark->domain);
	put_text_or_null(json, "source", NAME_OF(sources, mark->source));
	put_payload(json, "payload", mark->payload_type, mark->payload);
	torsh_json_end_object(json);
}

static void put_value(struct events *events, struct string_cache *strings,
		      const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	struct json_writer *json = begin_moment(events, "value", strings, event);

	put_label(json, "name", strings, value->name);
	put_label(json, "domain", strings, value->domain);
	put_text_or_null(json, "source", NAME_OF(sources, value->source));
	put_text_or_null(json, "kind", NAME_OF(kinds, value->kind));
	put_payload(json, "value", value->payload_type, value->payload);
	torsh_json_end_object(json);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct events *events = context;
	struct string_cache *strings = find_strings(events, process);

	torsh_collective_calls_see(&events->calls, process, event, innermost);
	if (event->event.id == EVENT_TENSOR)
		torsh_trace_add_tensor(innermost, &event->event.tensor);
	if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&events->collectives.groups, process, &event->event.process_group);
	if (!torsh_trace_has(events->trace, event->at_ns))
		return;
	if (event->event.id == EVENT_TENSOR)
		put_tensor(events, strings, event, innermost);
	else if (event->event.id == EVENT_OUT_OF_MEMORY)
		put_out_of_memory(events, strings, event);
	else if (event->event.id == EVENT_MARK)
		put_mark(events, strings, event);
	else if (event->event.id == EVENT_VALUE)
		put_value(events, strings, event);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void put_launch(void *context, const struct recorded_process *process,
		       const struct device_launch *launch)
{
	struct events *events = context;
	struct string_cache *strings = find_strings(events, process);
	struct json_writer *json = begin_event(events, "launch", strings, launch->thread);

	put_label(json, "api", strings, launch->api);
	torsh_json_put_u64(json, "start_ns", launch->begin_ns);
	torsh_json_put_u64(json, "end_ns", launch->begin_ns + launch->duration_ns);
	torsh_json_put_known(json, "correlation", launch->correlation, launch->correlation);
	torsh_json_put_i64(json, "result", launch->result);
	torsh_json_put_known(json, "operator", launch->cause.has_operator,
			     launch->cause.operator_span);
	put_label(json, "module", strings, launch->cause.module);
	torsh_json_put_u64(json, "caused", launch->n_caused);
	torsh_json_end_object(json);
}

/* Members that kernels, copies and memsets share. */
static void put_activity(struct json_writer *json, const struct events *events,
			 struct string_cache *strings, const struct device_activity *activity)
{
	const struct steps *steps =
		&torsh_prepass_of(events->trace->prepass, activity->process)->steps;
	const struct activity_record *record = &activity->record;
	size_t step = torsh_steps_at(steps, torsh_activity_issued_ns(activity));

	torsh_json_put_u64(json, "start_ns", record->begin_ns);
	torsh_json_put_u64(json, "end_ns", record->begin_ns + record->duration_ns);
	torsh_json_put_u64(json, "device", record->device);
	torsh_json_put_u64(json, "context", record->context);
	torsh_json_put_u64(json, "stream", record->stream);
	torsh_json_put_known(json, "correlation", record->correlation, record->correlation);
	torsh_json_put_known(json, "graph", record->graph || record->node, record->graph);
	torsh_json_put_known(json, "node", record->node, record->node);
	torsh_json_put_known(json, "operator", !activity->reason,
			     activity->reason ? 0 : activity->cause.operator_span);
	put_text_or_null(json, "reason", torsh_kernel_reasons[activity->reason]);
	put_label(json, "module", strings, activity->cause.module);
	put_text_or_null(json, "phase", torsh_activity_phase(activity));
	torsh_json_put_known(json, "step", step != STEP_NONE,
			     step != STEP_NONE ? steps->items[step].number : 0);
}

static void put_kernel(struct json_writer *json, struct string_cache *strings,
		       const struct event_kernel *kernel)
{
	put_text_or_null(json, "name", torsh_string_cache_kernel(strings, kernel->name));
	torsh_json_put_three(json, "grid", kernel->grid_x, kernel->grid_y, kernel->grid_z);
	torsh_json_put_three(json, "block", kernel->block_x, kernel->block_y, kernel->block_z);
	torsh_json_put_u64(json, "registers", kernel->registers);
	torsh_json_put_u64(json, "static_shared_bytes", kernel->static_shared_bytes);
	torsh_json_put_u64(json, "dynamic_shared_bytes", kernel->dynamic_shared_bytes);
	torsh_json_put_u64(json, "local_bytes", kernel->local_bytes);
}

static void put_copy(struct json_writer *json, const struct event_copy *copy)
{
	put_text_or_null(json, "kind", torsh_copy_name(copy->kind));
	put_text_or_null(json, "from", torsh_memory_name(copy->from));
	put_text_or_null(json, "to", torsh_memory_name(copy->to));
	torsh_json_put_u64(json, "to_device", copy->to_device);
	torsh_json_put_u64(json, "bytes", copy->bytes);
	torsh_json_put_bool(json, "is_async", copy->is_async);
}

static void put_memset(struct json_writer *json, const struct event_memset *memset)
{
	put_text_or_null(json, "to", torsh_memory_name(memset->to));
	torsh_json_put_u64(json, "value", memset->value);
	torsh_json_put_u64(json, "bytes", memset->bytes);
	torsh_json_put_bool(json, "is_async", memset->is_async);
}

static void put_row(void *context, const struct device_activity *activity)
{
	struct events *events = context;
	struct string_cache *strings = find_strings(events, activity->process);
	struct json_writer *json =
		begin_of_process(events, torsh_device_what_names[activity->record.what], strings);

	torsh_json_put_u64(json, "pid", activity->process->pid);
	put_activity(json, events, strings, activity);
	if (activity->record.what == DEVICE_KERNEL)
		put_kernel(json, strings, &activity->event.kernel);
	else if (activity->record.what == DEVICE_COPY)
		put_copy(json, &activity->event.copy);
	else if (activity->record.what == DEVICE_MEMSET)
		put_memset(json, &activity->event.memset);
	torsh_json_end_object(json);
}

static void put_collectives(struct events *events)
{
	torsh_json_begin_lines(&events->json, "collectives");
	for (size_t i = 0; i < events->calls.n; i++)
		if (torsh_trace_has(events->trace, events->calls.items[i].call_ns))
			torsh_collective_call_put_json(&events->json, &events->calls.items[i]);
	torsh_json_end_array(&events->json);
	torsh_collective_calls_free(&events->calls);
}

static int write_json(struct trace *trace)
{
	static const struct json_layout event_lines = {
		.first = {"\n", 1}, .between = {",\n", 2}, .last = {"\n", 1}, .colon = {":", 1}};
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	static const struct device_visitor devices = {.launch = put_launch, .activity = put_row};
	struct events events = {.trace = trace,
				.book = torsh_flops_book_create(trace->recording, trace->prepass)};
	int rc;

	torsh_stream_begin_json(trace->output, &events.json);
	torsh_events_put_head(&events.json, trace);
	events.strings = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*events.strings));
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_string_cache_create(&events.strings[i], trace, trace->processes[i]);
	torsh_json_begin_with(&events.json, "events", false, &event_lines);
	rc = torsh_trace_walk(trace, &visitor, &devices, &events);
	torsh_json_end_array(&events.json);
	put_collectives(&events);
	torsh_json_end_object(&events.json);
	torsh_stream_end_json(trace->output, &events.json);
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_string_cache_free(&events.strings[i]);
	free(events.strings);
	torsh_groups_free(&events.collectives.groups);
	torsh_flops_book_destroy(events.book);
	return rc;
}

const struct trace_format torsh_trace_json = {
	.name = "json", .ending = ".events.json", .needs = TRACE_NEEDS_EVENTS, .write = write_json};
