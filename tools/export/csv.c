/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Spans as comma-separated values (RFC 4180), one per line: operators, modules and ranges,
 * launching spans, and device activity, with their attributes. Unknown values are empty. Streams.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/csv_text.h"
#include "tools/export/trace.h"
#include "tools/ops/operators.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/prepass/process_groups.h"

/* Fills the columns from overload on for launches and device activity. */
#define NO_OPERATOR ",,,,,,,,"

struct csv {
	struct trace *trace;
	struct flops_book *book;
	struct collectives collectives;
	struct collective_calls calls;
};

static void put_text(struct output_stream *output, const char *text)
{
	torsh_csv_put(output, text, strlen(text));
}

static const char *category_of(const struct span *span)
{
	if (span->is_module)
		return "module";
	if (span->kind == SPAN_RANGE || span->scope == OP_USER)
		return "range";
	return span->scope == OP_BACKWARD ? "backward" : "operator";
}

static void see_begin(void *context, struct span *span)
{
	struct csv *csv = context;

	if (span->kind == SPAN_OPERATOR)
		torsh_flops_book_begin(csv->book, span);
}

static void put_label(struct output_stream *output, const struct recorded_process *process,
		      uint32_t label)
{
	const char *text = torsh_timeline_label(process, label);

	put_text(output, text ? text : "");
	torsh_stream_text(output, ",");
}

static void put_number(struct output_stream *output, uint64_t number)
{
	char digits[24], *end = torsh_digits(digits, number);

	*end++ = ',';
	torsh_stream_put(output, digits, (size_t)(end - digits));
}

static void put_time(struct output_stream *output, uint64_t ns)
{
	char digits[32], *end = torsh_digits_us(digits, ns);

	*end++ = ',';
	torsh_stream_put(output, digits, (size_t)(end - digits));
}

static void put_known(struct output_stream *output, bool is_known, uint64_t number)
{
	if (is_known)
		put_number(output, number);
	else
		torsh_stream_text(output, ",");
}

static void put_collective(struct csv *csv, const struct span *span)
{
	struct output_stream *output = csv->trace->output;
	struct collective collective;

	if (!torsh_collectives_read(&csv->collectives, span, &collective)) {
		torsh_stream_text(output, ",,,,,");
		return;
	}
	torsh_csv_put(output, collective.name, collective.n_name);
	torsh_stream_text(output, ",");
	if (collective.tensor)
		torsh_csv_put(output, collective.tensor->text, collective.tensor->n_type);
	torsh_stream_text(output, ",");
	put_number(output, collective.in_elements);
	put_number(output, collective.out_elements);
	put_text(output, collective.group->name ? collective.group->name : "");
	torsh_stream_text(output, ",");
}

static void see_end(void *context, struct span *span)
{
	struct csv *csv = context;
	struct output_stream *output = csv->trace->output;
	bool has_sequence = span->kind == SPAN_OPERATOR && span->sequence != OP_NO_SEQUENCE;
	struct flops own = {.status = FLOPS_NO_FORMULA};

	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(csv->book, span);
	if (!torsh_trace_has(csv->trace, span->start_ns))
		return;
	put_text(output, torsh_span_name(span));
	torsh_stream_print(output, ",%s,", category_of(span));
	put_time(output, span->start_ns);
	put_time(output, span->end_ns - span->start_ns);
	put_number(output, span->process->pid);
	put_number(output, torsh_trace_tid(span->process, span->thread));
	torsh_stream_print(output, "%s,", torsh_phase_names[span->phase]);
	put_known(output, own.status != FLOPS_NO_FORMULA, own.all);
	put_number(output, span->self_allocated_bytes);
	put_label(output, span->process, span->module);
	put_label(output, span->process, span->inputs);
	torsh_stream_text(output, ",,,,"); /* of devices */
	put_label(output, span->process, span->overload);
	put_known(output, has_sequence, span->sequence);
	put_known(output, has_sequence && span->forward_thread, span->forward_thread);
	put_collective(csv, span);
	torsh_stream_text(output, "\r\n");
}

static void put_launch(void *context, const struct recorded_process *process,
		       const struct device_launch *launch)
{
	struct output_stream *output = ((struct csv *)context)->trace->output;

	put_label(output, process, launch->api);
	torsh_stream_text(output, "launch,");
	put_time(output, launch->begin_ns);
	put_time(output, launch->duration_ns);
	put_number(output, process->pid);
	put_number(output, torsh_trace_tid(process, launch->thread));
	torsh_stream_text(output,
			  launch->cause.has_phase ? torsh_phase_names[launch->cause.phase] : "");
	torsh_stream_text(output, ",,,");
	put_label(output, process, launch->cause.module);
	torsh_stream_print(output, ",,,%" PRIu32 ",," NO_OPERATOR "\r\n", launch->correlation);
}

static void put_name(struct csv *csv, const struct device_activity *activity)
{
	const char *name = torsh_timeline_label(activity->process, activity->record.name);
	struct symbols *symbols = csv->trace->symbols;
	char title[DEVICE_TITLE_BYTES];

	if (torsh_activity_title(&activity->event, title))
		put_text(csv->trace->output, title);
	else
		put_text(csv->trace->output, !name     ? ""
					     : symbols ? torsh_symbols_demangle(symbols, name)
						       : name);
}

static void put_row(void *context, const struct device_activity *activity)
{
	struct csv *csv = context;
	struct output_stream *output = csv->trace->output;
	const char *phase = torsh_activity_phase(activity);

	put_name(csv, activity);
	torsh_stream_print(output, ",%s,", torsh_device_what_names[activity->record.what]);
	put_time(output, activity->record.begin_ns);
	put_time(output, activity->record.duration_ns);
	put_number(output, activity->process->pid);
	torsh_stream_print(output, ",%s,,,", phase ? phase : "");
	put_label(output, activity->process, activity->cause.module);
	torsh_stream_text(output, ",");
	put_number(output, activity->record.device);
	put_number(output, activity->record.stream);
	put_number(output, activity->record.correlation);
	if (activity->record.what != DEVICE_KERNEL)
		torsh_stream_print(output, "%" PRIu64, activity->record.bytes);
	torsh_stream_text(output, "," NO_OPERATOR);
	torsh_stream_text(output, "\r\n");
}

static void put_wait(struct csv *csv, const struct timeline_event *event,
		     const struct collective_call *call)
{
	const struct event_collective_wait *wait = &event->event.collective_wait;
	struct output_stream *output = csv->trace->output;

	if (!torsh_trace_has(csv->trace, wait->begin))
		return;
	torsh_stream_text(output, "wait for a collective,collective_wait,");
	put_time(output, wait->begin);
	put_time(output, wait->duration_ns);
	put_number(output, call->process->pid);
	put_number(output, torsh_trace_tid(call->process, event->thread));
	torsh_stream_text(output, ",,,,,,,,");
	put_known(output, call->has_bytes, call->in_bytes);
	torsh_stream_text(output, ",,,");
	torsh_csv_put(output, call->name ? call->name : "", call->n_name);
	torsh_stream_text(output, ",");
	torsh_csv_put(output, call->dtype ? call->dtype : "", call->n_dtype);
	torsh_stream_text(output, ",,,");
	put_text(output, call->group ? call->group : "");
	torsh_stream_text(output, ",");
	if (call->sequence != COLLECTIVE_NO_SEQUENCE)
		torsh_stream_print(output, "%" PRIu64, call->sequence);
	torsh_stream_text(output, "\r\n");
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct csv *csv = context;
	const struct collective_call *awaited =
		torsh_collective_calls_see(&csv->calls, process, event, innermost);

	if (awaited)
		put_wait(csv, event, awaited);
	if (event->event.id == EVENT_TENSOR)
		torsh_trace_add_tensor(innermost, &event->event.tensor);
	else if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&csv->collectives.groups, process, &event->event.process_group);
}

static int write_csv(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	static const struct device_visitor devices = {.launch = put_launch, .activity = put_row};
	struct csv csv = {.trace = trace,
			  .book = torsh_flops_book_create(trace->recording, trace->prepass)};
	int rc;

	torsh_stream_text(
		trace->output,
		"name,category,start_us,duration_us,process_id,thread_id,phase,flops,allocated_bytes,"
		"module,inputs,device,stream,correlation,bytes,overload,sequence,forward_thread,collective,"
		"collective_type,in_elements,out_elements,process_group,collective_sequence\r\n");
	rc = torsh_trace_walk(trace, &visitor, &devices, &csv);
	torsh_groups_free(&csv.collectives.groups);
	torsh_collective_calls_free(&csv.calls);
	torsh_flops_book_destroy(csv.book);
	return rc;
}

const struct trace_format torsh_trace_csv = {
	.name = "csv", .ending = ".csv", .needs = TRACE_NEEDS_EVENTS, .write = write_csv};
