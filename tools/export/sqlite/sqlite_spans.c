/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rows of spans, and of events at a moment. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/export/sqlite/sqlite.h"
#include "tools/ops/operators.h"

/* Begin the row of an event: its thread, and its time. */
static void begin_moment(struct database *database, enum statement statement,
			 const struct recorded_process *process, const struct timeline_event *event)
{
	torsh_database_fill(database, statement);
	torsh_database_number(database, process->number);
	torsh_database_number(database, event->thread);
	torsh_database_number(database, event->at_ns);
}

static void see_begin(void *context, struct span *span)
{
	struct sqlite *sqlite = context;

	if (span->kind == SPAN_OPERATOR)
		torsh_flops_book_begin(sqlite->book, span);
}

static void insert_collective(struct sqlite *sqlite, const struct span *span)
{
	struct database *database = &sqlite->database;
	struct collective collective;
	char *name, *type;

	if (!torsh_collectives_read(&sqlite->collectives, span, &collective))
		return;
	name = torsh_need(strndup(collective.name, collective.n_name));
	type = collective.tensor
		       ? torsh_need(strndup(collective.tensor->text, collective.tensor->n_type))
		       : NULL;
	torsh_database_fill(database, INSERT_COLLECTIVE);
	torsh_database_number(database, span->process->number);
	torsh_database_number(database, span->ordinal);
	torsh_database_text(database, name);
	torsh_database_text(database, type);
	torsh_database_number(database, collective.in_elements);
	torsh_database_number(database, collective.out_elements);
	torsh_database_number(database, collective.group->number);
	torsh_database_insert(database);
	free(name);
	free(type);
}

static void insert_operator(struct sqlite *sqlite, const struct span *span, const struct flops *own)
{
	struct database *database = &sqlite->database;
	const struct steps *steps = &torsh_prepass_of(sqlite->trace->prepass, span->process)->steps;
	const struct span *outer = torsh_span_outer_operator(span);
	uint64_t duration_ns = span->end_ns - span->start_ns;
	size_t step = torsh_steps_of(steps, span->start_ns, span->thread);
	uint32_t stack;

	stack = torsh_sqlite_stack(sqlite, span->process, span->stack);
	torsh_database_fill(database, INSERT_OP);
	torsh_database_number(database, span->ordinal);
	torsh_database_number(database, span->process->number);
	torsh_database_number(database, span->thread);
	torsh_database_number(database, span->start_ns);
	torsh_database_number(database, span->end_ns);
	torsh_database_number(database,
			      duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0);
	torsh_sqlite_label(sqlite, span->process, span->name);
	torsh_sqlite_label(sqlite, span->process, span->inputs);
	torsh_sqlite_label(sqlite, span->process, span->module);
	torsh_database_known(database, outer, outer ? outer->ordinal : 0);
	torsh_database_number(database, span->scope);
	torsh_database_known(database, span->sequence != OP_NO_SEQUENCE, span->sequence);
	torsh_database_word(database, torsh_phase_names[span->phase]);
	torsh_database_known(database, step != STEP_NONE,
			     step != STEP_NONE ? steps->items[step].number : 0);
	torsh_database_known(database, own->status != FLOPS_NO_FORMULA, own->counter);
	torsh_database_known(database, own->status != FLOPS_NO_FORMULA, own->all);
	torsh_database_number(database, span->self_allocated_bytes);
	torsh_database_number(database, span->self_freed_bytes);
	torsh_database_number(database, span->is_async);
	torsh_database_number(database, span->is_cut);
	torsh_database_known(database, stack, stack);
	torsh_sqlite_label(sqlite, span->process, span->overload);
	torsh_database_known(database, span->sequence != OP_NO_SEQUENCE && span->forward_thread,
			     span->forward_thread);
	torsh_database_insert(database);
	insert_collective(sqlite, span);
}

static void insert_range(struct sqlite *sqlite, const struct span *span)
{
	static const char *const sources[] = {"torsh", "nvtx", "itt", "module"};
	struct database *database = &sqlite->database;
	double payload = 0;
	uint32_t stack;
	bool has_payload = torsh_trace_payload(span->payload_type, span->payload, &payload);

	stack = torsh_sqlite_stack(sqlite, span->process, span->stack);
	torsh_database_fill(database, INSERT_RANGE);
	torsh_database_number(database, span->ordinal);
	torsh_database_number(database, span->process->number);
	torsh_database_number(database, span->thread);
	torsh_database_number(database, span->start_ns);
	torsh_database_number(database, span->end_ns);
	torsh_sqlite_label(sqlite, span->process, span->name);
	torsh_sqlite_label(sqlite, span->process, span->domain);
	torsh_sqlite_label(sqlite, span->process, span->category);
	torsh_database_word(database, span->source < sizeof(sources) / sizeof(*sources)
					      ? sources[span->source]
					      : NULL);
	torsh_database_real(database, has_payload, payload);
	torsh_database_number(database, span->is_async);
	torsh_database_number(database, span->is_cut);
	torsh_database_known(database, stack, stack);
	torsh_database_insert(database);
}

static void see_end(void *context, struct span *span)
{
	struct sqlite *sqlite = context;
	struct flops own = {.status = FLOPS_NO_FORMULA};

	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(sqlite->book, span);
	if (!torsh_trace_has(sqlite->trace, span->start_ns))
		return;
	if (span->kind == SPAN_OPERATOR)
		insert_operator(sqlite, span, &own);
	else
		insert_range(sqlite, span);
}

static void see_tensor(struct sqlite *sqlite, const struct recorded_process *process,
		       const struct timeline_event *event, struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct database *database = &sqlite->database;
	char device[32];
	uint32_t stack;

	torsh_trace_add_tensor(innermost, tensor);
	if (!torsh_trace_has(sqlite->trace, event->at_ns))
		return;
	stack = torsh_sqlite_stack(sqlite, process, event->stack);
	begin_moment(database, INSERT_TENSOR, process, event);
	torsh_database_number(database, tensor->address);
	torsh_database_number(database, tensor->is_free ? -tensor->bytes : tensor->bytes);
	torsh_database_text(database, torsh_device_name(tensor->device, device));
	torsh_database_known(database, innermost, innermost ? innermost->ordinal : 0);
	torsh_database_known(database, stack, stack);
	torsh_database_insert(database);
}

static void insert_out_of_memory(struct database *database, const struct recorded_process *process,
				 const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	char device[32];

	begin_moment(database, INSERT_OUT_OF_MEMORY, process, event);
	torsh_database_text(database, torsh_device_name(failed->device, device));
	torsh_database_number(database, failed->bytes);
	torsh_database_known(database, failed->allocated, failed->allocated);
	torsh_database_known(database, failed->reserved, failed->reserved);
	torsh_database_insert(database);
}

static void insert_mark(struct sqlite *sqlite, const struct recorded_process *process,
			const struct timeline_event *event)
{
	struct database *database = &sqlite->database;

	begin_moment(database, INSERT_MARK, process, event);
	torsh_sqlite_label(sqlite, process, event->event.mark.name);
	torsh_database_insert(database);
}

static void insert_value(struct sqlite *sqlite, const struct recorded_process *process,
			 const struct timeline_event *event)
{
	static const char *const kinds[] = {"scalar", "counter", "sample"};
	struct database *database = &sqlite->database;
	const struct event_value *value = &event->event.value;
	double number = 0;
	bool has_number = torsh_trace_payload(value->payload_type, value->payload, &number);

	begin_moment(database, INSERT_VALUE, process, event);
	torsh_sqlite_label(sqlite, process, value->name);
	torsh_database_word(
		database, value->kind < sizeof(kinds) / sizeof(*kinds) ? kinds[value->kind] : NULL);
	torsh_database_real(database, has_number, number);
	torsh_database_insert(database);
}

/* Also groups from before the window: a collective in it may refer to them. */
static void see_group(struct sqlite *sqlite, const struct recorded_process *process,
		      const struct event_process_group *group)
{
	struct database *database = &sqlite->database;

	torsh_groups_add(&sqlite->collectives.groups, process, group);
	torsh_database_fill(database, INSERT_PROCESS_GROUP);
	torsh_database_number(database, process->number);
	torsh_database_number(database, group->number);
	torsh_database_text(database, torsh_timeline_label(process, group->name));
	torsh_database_text(database, torsh_timeline_label(process, group->description));
	torsh_database_text(database, torsh_timeline_label(process, group->backend));
	torsh_database_text(database, torsh_timeline_label(process, group->ranks));
	torsh_database_number(database, group->n_ranks);
	torsh_database_insert(database);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct sqlite *sqlite = context;

	torsh_sqlite_calls_see(sqlite, process, event, innermost);
	torsh_collective_calls_see(&sqlite->calls_of_ranks, process, event, innermost);
	torsh_sqlite_nccl_see(sqlite, process, event);
	if (event->event.id == EVENT_TENSOR)
		see_tensor(sqlite, process, event, innermost);
	else if (event->event.id == EVENT_PROCESS_GROUP)
		see_group(sqlite, process, &event->event.process_group);
	else if (!torsh_trace_has(sqlite->trace, event->at_ns))
		return;
	else if (event->event.id == EVENT_OUT_OF_MEMORY)
		insert_out_of_memory(&sqlite->database, process, event);
	else if (event->event.id == EVENT_MARK)
		insert_mark(sqlite, process, event);
	else if (event->event.id == EVENT_VALUE)
		insert_value(sqlite, process, event);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	torsh_sqlite_calls_see(context, process, event, around->in_operator);
}

const struct span_visitor torsh_sqlite_span_visitor = {
	.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
