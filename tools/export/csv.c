/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Spans as lines of comma-separated values (RFC 4180): operators, modules and ranges, spans that
 * launch, and what devices did, with what is known of each. What is not known is empty. Streams.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/trace.h"
#include "tools/ops/operators.h"
#include "tools/timeline/prepass/process_groups.h"

/* What launches and devices have in place of the columns from overload on. */
#define NO_OPERATOR ",,,,,,,"

struct csv {
	struct trace *trace;
	struct flops_book *book;
	struct collectives collectives;
};

/*
 * In quotes where it holds a comma, a quote or the end of a line. What a spreadsheet would take for
 * a formula, and execute, gets an apostrophe in front.
 */
static void put_part(struct sink *sink, const char *text, size_t n)
{
	bool is_formula = n && memchr("=+-@\t\r", *text, 6),
	     is_quoted = n && strcspn(text, ",\"\r\n") < n;

	torsh_sink_text(sink, is_quoted ? "\"" : "");
	torsh_sink_text(sink, is_formula ? "'" : "");
	for (size_t i = 0; is_quoted && i < n; i++)
		torsh_sink_put(sink, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
	if (!is_quoted)
		torsh_sink_put(sink, text, n);
	torsh_sink_text(sink, is_quoted ? "\"" : "");
}

static void put_text(struct sink *sink, const char *text)
{
	put_part(sink, text, strlen(text));
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

static void put_label(struct sink *sink, const struct recorded_process *process, uint32_t label)
{
	const char *text = torsh_timeline_label(process, label);

	put_text(sink, text ? text : "");
	torsh_sink_text(sink, ",");
}

static void put_number(struct sink *sink, uint64_t number)
{
	char digits[24], *end = torsh_digits(digits, number);

	*end++ = ',';
	torsh_sink_put(sink, digits, (size_t)(end - digits));
}

static void put_time(struct sink *sink, uint64_t ns)
{
	char digits[32], *end = torsh_digits_us(digits, ns);

	*end++ = ',';
	torsh_sink_put(sink, digits, (size_t)(end - digits));
}

static void put_known(struct sink *sink, bool is_known, uint64_t number)
{
	if (is_known)
		put_number(sink, number);
	else
		torsh_sink_text(sink, ",");
}

static void put_collective(struct csv *csv, const struct span *span)
{
	struct sink *sink = csv->trace->sink;
	struct collective collective;

	if (!torsh_collectives_read(&csv->collectives, span, &collective)) {
		torsh_sink_text(sink, ",,,,");
		return;
	}
	put_part(sink, collective.name, collective.n_name);
	torsh_sink_text(sink, ",");
	if (collective.tensor)
		put_part(sink, collective.tensor->text, collective.tensor->n_type);
	torsh_sink_text(sink, ",");
	put_number(sink, collective.in_elements);
	put_number(sink, collective.out_elements);
	put_text(sink, collective.group->name ? collective.group->name : "");
}

static void see_end(void *context, struct span *span)
{
	struct csv *csv = context;
	struct sink *sink = csv->trace->sink;
	bool has_sequence = span->kind == SPAN_OPERATOR && span->sequence != OP_NO_SEQUENCE;
	struct flops own = {.status = FLOPS_NO_FORMULA};

	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(csv->book, span);
	if (!torsh_trace_has(csv->trace, span->start_ns))
		return;
	put_text(sink, torsh_span_name(span));
	torsh_sink_print(sink, ",%s,", category_of(span));
	put_time(sink, span->start_ns);
	put_time(sink, span->end_ns - span->start_ns);
	put_number(sink, span->process->pid);
	put_number(sink, torsh_trace_tid(span->process, span->thread));
	torsh_sink_print(sink, "%s,", torsh_phase_names[span->phase]);
	put_known(sink, own.status != FLOPS_NO_FORMULA, own.all);
	put_number(sink, span->self_allocated_bytes);
	put_label(sink, span->process, span->module);
	put_label(sink, span->process, span->inputs);
	torsh_sink_text(sink, ",,,,"); /* of devices */
	put_label(sink, span->process, span->overload);
	put_known(sink, has_sequence, span->sequence);
	put_known(sink, has_sequence && span->forward_thread, span->forward_thread);
	put_collective(csv, span);
	torsh_sink_text(sink, "\r\n");
}

static void put_launch(void *context, const struct recorded_process *process,
		       const struct device_launch *launch)
{
	struct sink *sink = ((struct csv *)context)->trace->sink;

	put_label(sink, process, launch->api);
	torsh_sink_text(sink, "launch,");
	put_time(sink, launch->begin_ns);
	put_time(sink, launch->duration_ns);
	put_number(sink, process->pid);
	put_number(sink, torsh_trace_tid(process, launch->thread));
	torsh_sink_text(sink,
			launch->cause.has_phase ? torsh_phase_names[launch->cause.phase] : "");
	torsh_sink_text(sink, ",,,");
	put_label(sink, process, launch->cause.module);
	torsh_sink_print(sink, ",,,%" PRIu32 ",," NO_OPERATOR "\r\n", launch->correlation);
}

static void put_name(struct csv *csv, const struct device_activity *activity)
{
	const char *name = torsh_timeline_label(activity->process, activity->record.name);
	struct symbols *symbols = csv->trace->symbols;
	char title[DEVICE_TITLE_BYTES];

	if (torsh_activity_title(&activity->event, title))
		put_text(csv->trace->sink, title);
	else
		put_text(csv->trace->sink, !name     ? ""
					   : symbols ? torsh_symbols_demangle(symbols, name)
						     : name);
}

static void put_row(void *context, const struct device_activity *activity)
{
	struct csv *csv = context;
	struct sink *sink = csv->trace->sink;
	const char *phase = torsh_activity_phase(activity);

	put_name(csv, activity);
	torsh_sink_print(sink, ",%s,", torsh_device_what_names[activity->record.what]);
	put_time(sink, activity->record.begin_ns);
	put_time(sink, activity->record.duration_ns);
	put_number(sink, activity->process->pid);
	torsh_sink_print(sink, ",%s,,,", phase ? phase : "");
	put_label(sink, activity->process, activity->cause.module);
	torsh_sink_text(sink, ",");
	put_number(sink, activity->record.device);
	put_number(sink, activity->record.stream);
	put_number(sink, activity->record.correlation);
	if (activity->record.what != DEVICE_KERNEL)
		torsh_sink_print(sink, "%" PRIu64, activity->record.bytes);
	torsh_sink_text(sink, "," NO_OPERATOR);
	torsh_sink_text(sink, "\r\n");
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct csv *csv = context;

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
	struct csv csv = {.trace = trace, .book = torsh_flops_book_create(trace->recording)};
	int rc;

	torsh_sink_text(
		trace->sink,
		"name,category,start_us,duration_us,process_id,thread_id,phase,flops,allocated_bytes,"
		"module,inputs,device,stream,correlation,bytes,overload,sequence,forward_thread,collective,"
		"collective_type,in_elements,out_elements,process_group\r\n");
	rc = torsh_trace_walk(trace, &visitor, &devices, &csv);
	torsh_groups_free(&csv.collectives.groups);
	torsh_flops_book_destroy(csv.book);
	return rc;
}

const struct trace_format torsh_trace_csv = {
	.name = "csv", .ending = ".csv", .needs = TRACE_NEEDS_EVENTS, .write = write_csv};
