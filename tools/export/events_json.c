/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The events of a timeline as JSON, for custom programs: one object with an "events" array of one
 * line per event; spans are written when they end. tools/schema/events.json describes them.
 * Streams.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/base/json.h"
#include "tools/export/string_cache.h"
#include "tools/memory/tensors.h"
#include "tools/ops/operators.h"
#include "tools/timeline/prepass/process_groups.h"

static const char *const sources[] = {"torsh", "nvtx", "itt", "module"};
static const char *const kinds[] = {"scalar", "counter", "sample"};

/* The name of a number, or null. */
#define NAME_OF(names, i) ((i) < sizeof(names) / sizeof(*(names)) ? (names)[i] : "unknown")

struct events {
	struct trace *trace;
	struct output_stream *output;
	struct string_cache *strings, *last;
	struct flops_book *book;
	struct collectives collectives;
	bool has_events;
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

static char *begin_of_process(struct events *events, const char *type, struct string_cache *strings)
{
	char *at = torsh_stream_reserve(events->output, STREAM_RESERVE_MAX);

	at = events->has_events ? PUT(at, ",\n{\"type\":\"") : PUT(at, "\n{\"type\":\"");
	events->has_events = true;
	at = torsh_put_text(at, type);
	at = NUMBER(at, "\",\"process\":", strings->process->number);
	return PUT(at, ",");
}

static char *begin_event(struct events *events, const char *type, struct string_cache *strings,
			 uint32_t thread)
{
	return torsh_put_text(begin_of_process(events, type, strings),
			      torsh_string_cache_thread(strings, thread));
}

static void end_event(struct events *events, char *at)
{
	at = PUT(at, "}");
	torsh_stream_commit(events->output, at);
}

/* A member that is a text, or null. */
static char *put_text_or_null(char *at, const char *name, const char *text)
{
	*at++ = ',';
	at = torsh_put_text(at, name);
	if (!text || !*text)
		return PUT(at, ":null");
	at = PUT(at, ":\"");
	at = torsh_put_text(at, text);
	return PUT(at, "\"");
}

static char *put_label(char *at, const char *name, struct string_cache *strings, uint32_t label)
{
	return put_text_or_null(at, name, label ? torsh_string_cache_name(strings, label) : NULL);
}

static char *put_known(char *at, const char *name, bool is_known, uint64_t number)
{
	*at++ = ',';
	at = torsh_put_text(at, name);
	*at++ = ':';
	return is_known ? torsh_digits(at, number) : PUT(at, "null");
}

static char *put_bool(char *at, const char *name, bool is_true)
{
	*at++ = ',';
	at = torsh_put_text(at, name);
	return is_true ? PUT(at, ":true") : PUT(at, ":false");
}

static char *put_payload(char *at, const char *name, uint32_t type, uint64_t payload)
{
	double number;

	*at++ = ',';
	at = torsh_put_text(at, name);
	if (!torsh_trace_payload(type, payload, &number))
		return PUT(at, ":null");
	return at + sprintf(at, ":%.17g", number);
}

static const char *inputs_of(struct string_cache *strings, uint32_t label)
{
	if (!label || label > strings->process->n_functions)
		return NULL;
	if (!strings->inputs[label])
		strings->inputs[label] =
			torsh_trace_escape(torsh_timeline_label(strings->process, label));
	return strlen(strings->inputs[label]) <= LABEL_BYTES_MAX ? strings->inputs[label] : NULL;
}

static char *put_stack(char *at, struct string_cache *strings, uint32_t stack)
{
	const char *text = torsh_string_cache_stack(strings, stack);
	size_t n = strlen(text);

	if (!n)
		return PUT(at, ",\"stack\":null");
	at = PUT(at, ",\"stack\":\"");
	memcpy(at, text, n);
	return PUT(at + n, "\"");
}

/* ---- events ---------------------------------------------------------------------------------- */

/* What operators and ranges have in common. */
static char *put_span(char *at, struct string_cache *strings, const struct span *span)
{
	at = NUMBER(at, ",\"id\":", span->ordinal);
	at = put_label(at, "\"name\"", strings, span->name);
	at = NUMBER(at, ",\"start_ns\":", span->start_ns);
	at = NUMBER(at, ",\"end_ns\":", span->end_ns);
	at = put_label(at, "\"module\"", strings, span->module);
	at = put_bool(at, "\"is_async\"", span->is_async);
	at = put_bool(at, "\"is_cut\"", span->is_cut);
	return put_stack(at, strings, span->stack);
}

/* An object, or null; the caller's. */
static char *make_collective(const struct collective *collective)
{
	const struct process_group *group = collective->group;
	const struct input *tensor = collective->tensor;
	char *name = torsh_trace_escape(group->name),
	     *description = torsh_trace_escape(group->description);
	char *ranks = torsh_trace_escape(group->ranks), *text;

	text = torsh_need_text("{\"name\":\"%.*s\",\"dtype\":%s%.*s%s,\"in_elements\":%" PRIu64
			       ",\"out_elements\":%" PRIu64
			       ",\"group\":\"%s\",\"group_description\":\"%s\","
			       "\"group_size\":%" PRIu32 ",\"group_ranks\":\"%s\"}",
			       (int)collective->n_name, collective->name, tensor ? "\"" : "",
			       tensor ? (int)tensor->n_type : 4, tensor ? tensor->text : "null",
			       tensor ? "\"" : "", collective->in_elements,
			       collective->out_elements, name, description, group->n_ranks, ranks);
	free(name);
	free(description);
	free(ranks);
	return text;
}

static char *put_collective(char *at, struct events *events, const struct span *span)
{
	struct collective collective;
	char *text = NULL;

	if (torsh_collectives_read(&events->collectives, span, &collective))
		text = make_collective(&collective);
	at = PUT(at, ",\"collective\":");
	at = torsh_put_text(at, text && strlen(text) <= LABEL_BYTES_MAX ? text : "null");
	free(text);
	return at;
}

static void put_operator(struct events *events, struct string_cache *strings,
			 const struct span *span, const struct flops *own)
{
	const struct steps *steps = &torsh_prepass_of(events->trace->prepass, span->process)->steps;
	const struct span *outer = torsh_span_outer_operator(span);
	uint64_t duration_ns = span->end_ns - span->start_ns;
	size_t step = torsh_steps_at(steps, span->start_ns);
	bool has_sequence = span->sequence != OP_NO_SEQUENCE,
	     has_formula = own->status != FLOPS_NO_FORMULA;
	char *at = begin_event(events, "operator", strings, span->thread);

	at = put_span(at, strings, span);
	at = put_text_or_null(at, "\"inputs\"", inputs_of(strings, span->inputs));
	at = put_label(at, "\"overload\"", strings, span->overload);
	at = NUMBER(at, ",\"self_ns\":",
		    duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0);
	at = put_known(at, "\"outer\"", outer, outer ? outer->ordinal : 0);
	at = NUMBER(at, ",\"scope\":", span->scope);
	at = put_known(at, "\"sequence\"", has_sequence, span->sequence);
	at = put_known(at, "\"forward_thread\"", has_sequence && span->forward_thread,
		       span->forward_thread);
	at = put_collective(at, events, span);
	at = put_text_or_null(at, "\"phase\"", torsh_phase_names[span->phase]);
	at = put_known(at, "\"step\"", step != STEP_NONE,
		       step != STEP_NONE ? steps->items[step].number : 0);
	at = put_known(at, "\"flops\"", has_formula, own->counter);
	at = put_known(at, "\"flops_all\"", has_formula, own->all);
	at = NUMBER(at, ",\"allocated_bytes\":", span->self_allocated_bytes);
	end_event(events, NUMBER(at, ",\"freed_bytes\":", span->self_freed_bytes));
}

static void put_range(struct events *events, struct string_cache *strings, const struct span *span)
{
	char *at = begin_event(events, span->is_module ? "module" : "range", strings, span->thread);

	at = put_span(at, strings, span);
	at = put_label(at, "\"domain\"", strings, span->domain);
	at = put_label(at, "\"category\"", strings, span->category);
	at = put_text_or_null(at, "\"source\"", NAME_OF(sources, span->source));
	end_event(events, put_payload(at, "\"payload\"", span->payload_type, span->payload));
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

static char *begin_moment(struct events *events, const char *type, struct string_cache *strings,
			  const struct timeline_event *event)
{
	return NUMBER(begin_event(events, type, strings, event->thread),
		      ",\"at_ns\":", event->at_ns);
}

static void put_tensor(struct events *events, struct string_cache *strings,
		       const struct timeline_event *event, const struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	char device[32], *at = begin_moment(events, "tensor", strings, event);

	at += sprintf(at, ",\"address\":\"0x%" PRIx64 "\"", tensor->address);
	at = NUMBER(at, ",\"bytes\":", tensor->bytes);
	at = put_bool(at, "\"is_free\"", tensor->is_free);
	at = put_text_or_null(at, "\"device\"", torsh_device_name(tensor->device, device));
	at = put_known(at, "\"allocated_bytes\"", tensor->allocated, tensor->allocated);
	at = put_known(at, "\"reserved_bytes\"", tensor->reserved, tensor->reserved);
	at = put_known(at, "\"operator\"", innermost, innermost ? innermost->ordinal : 0);
	end_event(events, put_stack(at, strings, event->stack));
}

static void put_out_of_memory(struct events *events, struct string_cache *strings,
			      const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	char device[32], *at = begin_moment(events, "out_of_memory", strings, event);

	at = NUMBER(at, ",\"bytes\":", failed->bytes);
	at = put_text_or_null(at, "\"device\"", torsh_device_name(failed->device, device));
	at = put_known(at, "\"allocated_bytes\"", failed->allocated, failed->allocated);
	end_event(events, put_known(at, "\"reserved_bytes\"", failed->reserved, failed->reserved));
}

static void put_mark(struct events *events, struct string_cache *strings,
		     const struct timeline_event *event)
{
	const struct event_mark *mark = &event->event.mark;
	char *at = put_label(begin_moment(events, "mark", strings, event), "\"name\"", strings,
			     mark->name);

	at = put_label(at, "\"domain\"", strings, mark->domain);
	at = put_text_or_null(at, "\"source\"", NAME_OF(sources, mark->source));
	end_event(events, put_payload(at, "\"payload\"", mark->payload_type, mark->payload));
}

static void put_value(struct events *events, struct string_cache *strings,
		      const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	char *at = put_label(begin_moment(events, "value", strings, event), "\"name\"", strings,
			     value->name);

	at = put_label(at, "\"domain\"", strings, value->domain);
	at = put_text_or_null(at, "\"source\"", NAME_OF(sources, value->source));
	at = put_text_or_null(at, "\"kind\"", NAME_OF(kinds, value->kind));
	end_event(events, put_payload(at, "\"value\"", value->payload_type, value->payload));
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct events *events = context;
	struct string_cache *strings = find_strings(events, process);

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
	char *at = begin_event(events, "launch", strings, launch->thread);

	at = put_label(at, "\"api\"", strings, launch->api);
	at = NUMBER(at, ",\"start_ns\":", launch->begin_ns);
	at = NUMBER(at, ",\"end_ns\":", launch->begin_ns + launch->duration_ns);
	at = put_known(at, "\"correlation\"", launch->correlation, launch->correlation);
	at += sprintf(at, ",\"result\":%" PRId32, launch->result);
	at = put_known(at, "\"operator\"", launch->cause.has_operator, launch->cause.operator_span);
	at = put_label(at, "\"module\"", strings, launch->cause.module);
	end_event(events, NUMBER(at, ",\"caused\":", launch->n_caused));
}

/* What kernels, copies and memsets have in common. */
static char *put_activity(char *at, const struct events *events, struct string_cache *strings,
			  const struct device_activity *activity)
{
	const struct steps *steps =
		&torsh_prepass_of(events->trace->prepass, activity->process)->steps;
	const struct activity_record *record = &activity->record;
	size_t step = torsh_steps_at(steps, torsh_activity_issued_ns(activity));

	at = NUMBER(at, ",\"start_ns\":", record->begin_ns);
	at = NUMBER(at, ",\"end_ns\":", record->begin_ns + record->duration_ns);
	at = NUMBER(at, ",\"device\":", record->device);
	at = NUMBER(at, ",\"context\":", record->context);
	at = NUMBER(at, ",\"stream\":", record->stream);
	at = put_known(at, "\"correlation\"", record->correlation, record->correlation);
	at = put_known(at, "\"graph\"", record->graph || record->node, record->graph);
	at = put_known(at, "\"node\"", record->node, record->node);
	at = put_known(at, "\"operator\"", !activity->reason,
		       activity->reason ? 0 : activity->cause.operator_span);
	at = put_text_or_null(at, "\"reason\"", torsh_kernel_reasons[activity->reason]);
	at = put_label(at, "\"module\"", strings, activity->cause.module);
	at = put_text_or_null(at, "\"phase\"", torsh_activity_phase(activity));
	return put_known(at, "\"step\"", step != STEP_NONE,
			 step != STEP_NONE ? steps->items[step].number : 0);
}

static char *put_three(char *at, const char *name, uint32_t x, uint32_t y, uint32_t z)
{
	return at + sprintf(at, ",%s:[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", name, x, y, z);
}

static char *put_kernel(char *at, struct string_cache *strings, const struct event_kernel *kernel)
{
	at = put_text_or_null(at, "\"name\"", torsh_string_cache_kernel(strings, kernel->name));
	at = put_three(at, "\"grid\"", kernel->grid_x, kernel->grid_y, kernel->grid_z);
	at = put_three(at, "\"block\"", kernel->block_x, kernel->block_y, kernel->block_z);
	at = NUMBER(at, ",\"registers\":", kernel->registers);
	at = NUMBER(at, ",\"static_shared_bytes\":", kernel->static_shared_bytes);
	at = NUMBER(at, ",\"dynamic_shared_bytes\":", kernel->dynamic_shared_bytes);
	return NUMBER(at, ",\"local_bytes\":", kernel->local_bytes);
}

static char *put_copy(char *at, const struct event_copy *copy)
{
	at = put_text_or_null(at, "\"kind\"", torsh_copy_name(copy->kind));
	at = put_text_or_null(at, "\"from\"", torsh_memory_name(copy->from));
	at = put_text_or_null(at, "\"to\"", torsh_memory_name(copy->to));
	at = NUMBER(at, ",\"to_device\":", copy->to_device);
	at = NUMBER(at, ",\"bytes\":", copy->bytes);
	return put_bool(at, "\"is_async\"", copy->is_async);
}

static char *put_memset(char *at, const struct event_memset *memset)
{
	at = put_text_or_null(at, "\"to\"", torsh_memory_name(memset->to));
	at = NUMBER(at, ",\"value\":", memset->value);
	at = NUMBER(at, ",\"bytes\":", memset->bytes);
	return put_bool(at, "\"is_async\"", memset->is_async);
}

static void put_row(void *context, const struct device_activity *activity)
{
	struct events *events = context;
	struct string_cache *strings = find_strings(events, activity->process);
	char *at =
		begin_of_process(events, torsh_device_what_names[activity->record.what], strings);

	at = NUMBER(at, "\"pid\":", activity->process->pid);
	at = put_activity(at, events, strings, activity);
	if (activity->record.what == DEVICE_KERNEL)
		at = put_kernel(at, strings, &activity->event.kernel);
	else if (activity->record.what == DEVICE_COPY)
		at = put_copy(at, &activity->event.copy);
	else if (activity->record.what == DEVICE_MEMSET)
		at = put_memset(at, &activity->event.memset);
	end_event(events, at);
}

/* ---- written once ------------------------------------------------------------------------ */

static void put_item(struct output_stream *output, bool is_first, cJSON *item)
{
	char *text = torsh_need(cJSON_PrintUnformatted(item));

	torsh_stream_text(output, is_first ? "\n" : ",\n");
	torsh_stream_text(output, text);
	cJSON_free(text);
	cJSON_Delete(item);
}

static void put_processes(const struct trace *trace)
{
	torsh_stream_text(trace->output, "\"processes\":[");
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct recorded_process *process = trace->processes[i];
		cJSON *item = torsh_json_object();

		torsh_json_set(item, "process", torsh_json_u64(process->number));
		torsh_json_set(item, "pid", torsh_json_u64(process->pid));
		torsh_json_set(item, "parent_pid", torsh_json_u64(process->parent_pid));
		torsh_json_set(item, "program", torsh_json_text(process->program));
		torsh_json_set(item, "rank", torsh_json_text(process->rank));
		torsh_json_set(item, "start_ns", torsh_json_u64(process->start_ns));
		put_item(trace->output, !i, item);
	}
	torsh_stream_text(trace->output, "],\n");
}

static void put_steps(const struct trace *trace)
{
	bool is_first = true;

	torsh_stream_text(trace->output, "\"steps\":[");
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct steps *steps =
			&torsh_prepass_of(trace->prepass, trace->processes[i])->steps;

		for (size_t k = 0; k < steps->n; k++) {
			cJSON *item;

			if (!torsh_trace_has(trace, steps->items[k].start_ns))
				continue;
			item = torsh_json_object();
			torsh_json_set(item, "process",
				       torsh_json_u64(trace->processes[i]->number));
			torsh_json_set(item, "number", torsh_json_u64(steps->items[k].number));
			torsh_json_set(item, "start_ns", torsh_json_u64(steps->items[k].start_ns));
			torsh_json_set(item, "end_ns", torsh_json_u64(steps->items[k].end_ns));
			torsh_json_set(item, "rule",
				       torsh_json_text(torsh_step_rule_names[steps->rule]));
			put_item(trace->output, is_first, item);
			is_first = false;
		}
	}
	torsh_stream_text(trace->output, "],\n");
}

static int write_json(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	static const struct device_visitor devices = {.launch = put_launch, .activity = put_row};
	struct events events = {.trace = trace,
				.output = trace->output,
				.book = torsh_flops_book_create(trace->recording)};
	char *host = torsh_trace_escape(trace->recording->host);
	int rc;

	torsh_stream_print(trace->output,
			   "{\"version\":1,\n\"start_realtime_ns\":%" PRIu64
			   ",\n\"host\":\"%s\",\n",
			   trace->recording->start_realtime_ns, host);
	free(host);
	put_processes(trace);
	put_steps(trace);
	events.strings = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*events.strings));
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_string_cache_create(&events.strings[i], trace, trace->processes[i]);
	torsh_stream_text(trace->output, "\"events\":[");
	rc = torsh_trace_walk(trace, &visitor, &devices, &events);
	torsh_stream_text(trace->output, "\n]}\n");
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_string_cache_free(&events.strings[i]);
	free(events.strings);
	torsh_groups_free(&events.collectives.groups);
	torsh_flops_book_destroy(events.book);
	return rc;
}

const struct trace_format torsh_trace_json = {
	.name = "json", .ending = ".events.json", .needs = TRACE_NEEDS_EVENTS, .write = write_json};
