/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device activity, and the calls that launched it, as rows of the database. */
#include "tools/export/sqlite/sqlite.h"

/* Call before the row with the name is begun. */
static void meet_kernel(struct sqlite *sqlite, const struct recorded_process *process,
			uint32_t label)
{
	struct known *known = torsh_sqlite_known(sqlite, process);
	const char *name = torsh_timeline_label(process, label);

	if (!name || known->kernels[label])
		return;
	known->kernels[label] = true;
	torsh_database_fill(&sqlite->database, INSERT_KERNEL_NAME);
	torsh_database_number(&sqlite->database, process->number);
	torsh_database_number(&sqlite->database, label);
	torsh_database_text(&sqlite->database,
			    torsh_symbols_demangle(sqlite->trace->symbols, name));
	torsh_database_text(&sqlite->database, name);
	torsh_database_insert(&sqlite->database);
}

static void insert_launch(void *context, const struct recorded_process *process,
			  const struct device_launch *launch)
{
	struct sqlite *sqlite = context;
	struct database *database = &sqlite->database;

	torsh_database_fill(database, INSERT_LAUNCH);
	torsh_database_number(database, process->number);
	torsh_database_number(database, launch->thread);
	torsh_database_number(database, launch->begin_ns);
	torsh_database_number(database, launch->begin_ns + launch->duration_ns);
	torsh_sqlite_label(sqlite, process, launch->api);
	torsh_database_known(database, launch->correlation, launch->correlation);
	torsh_database_number(database, (uint64_t)launch->result);
	torsh_database_known(database, launch->cause.has_operator, launch->cause.operator_span);
	torsh_sqlite_label(sqlite, process, launch->cause.module);
	torsh_database_number(database, launch->n_caused);
	torsh_database_insert(database);
}

/* Bind the first columns, which the tables share. */
static void fill_span(struct sqlite *sqlite, enum statement statement,
		      const struct device_activity *activity)
{
	const struct steps *steps =
		&torsh_prepass_of(sqlite->trace->prepass, activity->process)->steps;
	struct database *database = &sqlite->database;
	const struct activity_record *record = &activity->record;
	size_t step = torsh_steps_at(steps, torsh_activity_issued_ns(activity));

	torsh_database_fill(database, statement);
	torsh_database_number(database, activity->process->number);
	torsh_database_number(database, record->device);
	torsh_database_number(database, record->context);
	torsh_database_number(database, record->stream);
	torsh_database_number(database, record->begin_ns);
	torsh_database_number(database, record->begin_ns + record->duration_ns);
	torsh_database_known(database, record->correlation, record->correlation);
	torsh_database_known(database, record->graph || record->node, record->graph);
	torsh_database_known(database, record->node, record->node);
	torsh_database_known(database, !activity->reason,
			     activity->reason ? 0 : activity->cause.operator_span);
	torsh_database_word(database,
			    activity->reason ? torsh_kernel_reasons[activity->reason] : NULL);
	torsh_sqlite_label(sqlite, activity->process, activity->cause.module);
	torsh_database_word(database, torsh_activity_phase(activity));
	torsh_database_known(database, step != STEP_NONE,
			     step != STEP_NONE ? steps->items[step].number : 0);
}

static void insert_kernel(struct sqlite *sqlite, const struct device_activity *activity)
{
	const struct event_kernel *kernel = &activity->event.kernel;
	struct database *database = &sqlite->database;

	meet_kernel(sqlite, activity->process, kernel->name);
	fill_span(sqlite, INSERT_KERNEL, activity);
	torsh_sqlite_label(sqlite, activity->process, kernel->name);
	torsh_database_number(database, kernel->grid_x);
	torsh_database_number(database, kernel->grid_y);
	torsh_database_number(database, kernel->grid_z);
	torsh_database_number(database, kernel->block_x);
	torsh_database_number(database, kernel->block_y);
	torsh_database_number(database, kernel->block_z);
	torsh_database_number(database, kernel->registers);
	torsh_database_number(database, kernel->static_shared_bytes);
	torsh_database_number(database, kernel->dynamic_shared_bytes);
	torsh_database_number(database, kernel->local_bytes);
	torsh_database_insert(database);
}

static void insert_copy(struct sqlite *sqlite, const struct device_activity *activity)
{
	const struct event_copy *copy = &activity->event.copy;
	struct database *database = &sqlite->database;

	fill_span(sqlite, INSERT_COPY, activity);
	torsh_database_word(database, torsh_copy_name(copy->kind));
	torsh_database_word(database, torsh_memory_name(copy->from));
	torsh_database_word(database, torsh_memory_name(copy->to));
	torsh_database_number(database, copy->to_device);
	torsh_database_number(database, copy->bytes);
	torsh_database_number(database, copy->is_async);
	torsh_database_insert(database);
}

static void insert_memset(struct sqlite *sqlite, const struct device_activity *activity)
{
	const struct event_memset *memset = &activity->event.memset;
	struct database *database = &sqlite->database;

	fill_span(sqlite, INSERT_MEMSET, activity);
	torsh_database_word(database, torsh_memory_name(memset->to));
	torsh_database_number(database, memset->value);
	torsh_database_number(database, memset->bytes);
	torsh_database_number(database, memset->is_async);
	torsh_database_insert(database);
}

/* Timed only as a whole. */
static void insert_graph(struct sqlite *sqlite, const struct device_activity *activity)
{
	fill_span(sqlite, INSERT_GRAPH, activity);
	torsh_database_insert(&sqlite->database);
}

static void insert_row(void *context, const struct device_activity *activity)
{
	static void (*const inserters[N_DEVICE_WHATS])(struct sqlite * sqlite,
						       const struct device_activity *activity) = {
		[DEVICE_KERNEL] = insert_kernel,
		[DEVICE_COPY] = insert_copy,
		[DEVICE_MEMSET] = insert_memset,
		[DEVICE_GRAPH] = insert_graph};

	inserters[activity->record.what](context, activity);
}

const struct device_visitor torsh_sqlite_device_visitor = {.launch = insert_launch,
							   .activity = insert_row};
