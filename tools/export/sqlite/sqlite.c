/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The timeline as an SQLite database, with the allocation sites at its peaks. The tables are in
 * tools/export/sqlite/sqlite_tables.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/export/sqlite/sqlite.h"
#include "tools/base/containers/array.h"
#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/base/private_file.h"
#include "tools/memory/tensors.h"
#include "tools/ops/operators.h"
#include "tools/symbols/frame_text.h"
#include "tools/symbols/stack_view.h"

/* version of the tables: incremented if one is renamed or changes its meaning */
#define DATABASE_FORMAT 2

/* ---- values ---------------------------------------------------------------------------------- */

struct known *torsh_sqlite_known(struct sqlite *sqlite, const struct recorded_process *process)
{
	struct known *known = sqlite->known;

	while (known->process != process)
		known++;
	return known;
}

static void insert_frames(struct sqlite *sqlite, struct known *known, uint32_t address)
{
	const struct frames *frames =
		torsh_symbols_frames(sqlite->trace->symbols, known->process, address);
	struct database *database = &sqlite->database;
	char name[256];

	if (known->addresses[address])
		return;
	known->addresses[address] = true;
	for (size_t i = 0; i < frames->n; i++) {
		const struct frame *frame = &frames->frames[i];

		torsh_database_fill(database, INSERT_FRAME);
		torsh_database_number(database, known->process->number);
		torsh_database_number(database, address);
		torsh_database_number(database, i);
		torsh_database_text(database, torsh_frame_name(frame, name, sizeof(name)));
		torsh_database_text(database, frame->file);
		torsh_database_known(database, frame->line > 0, (uint64_t)frame->line);
		torsh_database_text(database, frame->module);
		torsh_database_number(database, frame->is_python);
		torsh_database_insert(database);
	}
}

static void make_room(struct known *known)
{
	known->stacks = torsh_array_extend(known->stacks, known->process->tables->n_stacks,
					   &known->n_stacks, sizeof(*known->stacks));
}

uint32_t torsh_sqlite_stack(struct sqlite *sqlite, const struct recorded_process *process,
			    uint32_t stack)
{
	struct known *known = torsh_sqlite_known(sqlite, process);
	struct database *database = &sqlite->database;
	uint32_t shown, at;

	if (!stack || stack >= process->tables->n_stacks)
		return 0;
	shown = torsh_stack_view(known->process, stack, sqlite->trace->symbols, STACK_VIEW_MERGED);
	make_room(known);
	for (at = shown; at && !known->stacks[at]; at = process->tables->stacks[at].parent) {
		known->stacks[at] = true;
		insert_frames(sqlite, known, process->tables->stacks[at].address);
		torsh_database_fill(database, INSERT_STACK);
		torsh_database_number(database, process->number);
		torsh_database_number(database, at);
		torsh_database_known(database, process->tables->stacks[at].parent,
				     process->tables->stacks[at].parent);
		torsh_database_number(database, process->tables->stacks[at].address);
		torsh_database_insert(database);
	}
	return shown;
}

/* ---- who there was --------------------------------------------------------------------------- */

static void insert_threads(struct database *database, const struct recorded_process *process)
{
	for (size_t i = 0; i < process->n_threads; i++) {
		if (!process->threads[i].is_known)
			continue;
		torsh_database_fill(database, INSERT_THREAD);
		torsh_database_number(database, process->number);
		torsh_database_number(database, i);
		torsh_database_number(database, process->threads[i].tid);
		torsh_database_text(database, process->threads[i].name);
		torsh_database_insert(database);
	}
}

void torsh_sqlite_label(struct sqlite *sqlite, const struct recorded_process *process,
			uint32_t label)
{
	if (label <= process->tables->n_functions)
		torsh_sqlite_known(sqlite, process)->labels[label] = true;
	torsh_database_known(&sqlite->database, label, label);
}

/* Processes of one program share their labels: each has rows for those that its rows have. */
static void insert_labels(struct database *database, const struct known *known)
{
	const struct recorded_process *process = known->process;

	for (uint32_t label = 1; label <= process->tables->n_functions; label++) {
		if (!known->labels[label])
			continue;
		torsh_database_fill(database, INSERT_LABEL);
		torsh_database_number(database, process->number);
		torsh_database_number(database, label);
		torsh_database_text(database, torsh_timeline_label(process, label));
		torsh_database_insert(database);
	}
}

static void insert_steps(struct sqlite *sqlite, const struct recorded_process *process)
{
	const struct steps *steps = &torsh_prepass_of(sqlite->trace->prepass, process)->steps;
	struct database *database = &sqlite->database;

	for (size_t i = 0; i < steps->n; i++) {
		if (!torsh_trace_has(sqlite->trace, steps->items[i].start_ns))
			continue;
		torsh_database_fill(database, INSERT_STEP);
		torsh_database_number(database, process->number);
		torsh_database_number(database, steps->items[i].number);
		torsh_database_number(database, steps->items[i].start_ns);
		torsh_database_number(database, steps->items[i].end_ns);
		torsh_database_word(database, torsh_step_rule_names[steps->rule]);
		torsh_database_insert(database);
	}
}

static void bind_identity(struct database *database, const struct recorded_identity *identity)
{
	torsh_database_known(database, identity->has_world_size, identity->world_size);
	torsh_database_known(database, identity->has_local_rank, identity->local_rank);
	torsh_database_known(database, identity->has_local_world_size, identity->local_world_size);
	torsh_database_known(database, identity->has_node_rank, identity->node_rank);
	torsh_database_text(database, identity->launcher);
	torsh_database_text(database, identity->role);
	torsh_database_text(database, identity->job);
}

static void insert_labels_of_run(struct database *database, const struct recorded_process *process)
{
	for (size_t i = 0; i < process->identity.n_labels; i++) {
		torsh_database_fill(database, INSERT_RUN_LABEL);
		torsh_database_number(database, process->number);
		torsh_database_text(database, process->identity.label_names[i]);
		torsh_database_text(database, process->identity.label_values[i]);
		torsh_database_insert(database);
	}
}

static void insert_process(struct sqlite *sqlite, const struct recorded_process *process)
{
	struct database *database = &sqlite->database;

	torsh_database_fill(database, INSERT_PROCESS);
	torsh_database_number(database, process->number);
	torsh_database_number(database, process->pid);
	torsh_database_number(database, process->parent_pid);
	torsh_database_text(database, process->program);
	torsh_database_text(database, process->rank);
	torsh_database_number(database, process->start_ns);
	torsh_database_known(database, process->has_end_ns, process->end_ns);
	bind_identity(database, &process->identity);
	torsh_database_insert(database);
	insert_labels_of_run(database, process);
	insert_threads(database, process);
	insert_steps(sqlite, process);
}

/* ---- who held memory when it was most -------------------------------------------------------- */

static void insert_peak_of_device(struct database *database, const struct tensor_device *device)
{
	char name[32];

	for (size_t i = 0; i < device->n_sites; i++) {
		const struct tensor_site *site = &device->sites[i];

		if (!site->blocks)
			continue;
		torsh_database_fill(database, INSERT_PEAK_TENSOR);
		torsh_database_number(database, device->process->number);
		torsh_database_text(database, torsh_device_name(device->device, name));
		torsh_database_text(database, site->operator_name);
		torsh_database_text(database, site->module);
		torsh_database_word(database, torsh_phase_names[site->phase]);
		torsh_database_number(database, site->blocks);
		torsh_database_number(database, site->bytes);
		torsh_database_insert(database);
	}
}

static void insert_peak_tensors(struct sqlite *sqlite)
{
	const struct trace *trace = sqlite->trace;
	struct tensors tensors;

	torsh_tensors_collect(&tensors, TENSORS_BY_OPERATOR, trace->recording, trace->processes,
			      trace->n_processes, trace->prepass);
	for (size_t i = 0; i < tensors.n; i++)
		insert_peak_of_device(&sqlite->database, &tensors.items[i]);
	torsh_tensors_free(&tensors);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void insert_meta(struct sqlite *sqlite)
{
	struct database *database = &sqlite->database;

	torsh_database_fill(database, INSERT_META);
	torsh_database_word(database, "format");
	torsh_database_number(database, DATABASE_FORMAT);
	torsh_database_insert(database);
	torsh_database_fill(database, INSERT_META);
	torsh_database_word(database, "start_realtime_ns");
	torsh_database_number(database, sqlite->trace->recording->start_realtime_ns);
	torsh_database_insert(database);
	torsh_database_fill(database, INSERT_META);
	torsh_database_word(database, "host");
	torsh_database_text(database, sqlite->trace->recording->host);
	torsh_database_insert(database);
}

static int insert_all(struct sqlite *sqlite)
{
	struct trace *trace = sqlite->trace;
	int rc;

	insert_meta(sqlite);
	for (size_t i = 0; i < trace->n_processes; i++)
		insert_process(sqlite, trace->processes[i]);
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_sqlite_insert_heap(sqlite, trace->processes[i]);
	torsh_sqlite_insert_peak(sqlite);
	torsh_sqlite_insert_leaks(sqlite);
	insert_peak_tensors(sqlite);
	rc = torsh_trace_walk(trace, &torsh_sqlite_span_visitor, &torsh_sqlite_device_visitor,
			      sqlite);
	torsh_sqlite_calls_insert(sqlite);
	torsh_sqlite_collectives_insert(sqlite);
	torsh_sqlite_nccl_insert(sqlite);
	for (size_t i = 0; i < trace->n_processes; i++)
		insert_labels(&sqlite->database, &sqlite->known[i]);
	return rc;
}

static void know_processes(struct sqlite *sqlite)
{
	const struct trace *trace = sqlite->trace;

	sqlite->known = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*sqlite->known));
	for (size_t i = 0; i < trace->n_processes; i++) {
		struct known *known = &sqlite->known[i];

		known->process = trace->processes[i];
		known->addresses =
			torsh_need_items(NULL, 0, known->process->tables->n_addresses + 1,
					 sizeof(*known->addresses));
		known->labels = torsh_need_items(NULL, 0, known->process->tables->n_functions + 1,
						 sizeof(*known->labels));
		known->kernels = torsh_need_items(NULL, 0, known->process->tables->n_functions + 1,
						  sizeof(*known->kernels));
		make_room(known);
	}
}

static void forget_processes(struct sqlite *sqlite)
{
	for (size_t i = 0; i < sqlite->trace->n_processes; i++) {
		free(sqlite->known[i].stacks);
		free(sqlite->known[i].addresses);
		free(sqlite->known[i].labels);
		free(sqlite->known[i].kernels);
	}
	free(sqlite->known);
}

static int write_sqlite(struct trace *trace)
{
	struct sqlite sqlite = {.trace = trace,
				.book = torsh_flops_book_create(trace->recording, trace->prepass)};
	struct private_file place;
	char *temporary;
	int rc = torsh_private_create(&place, trace->path), closed;

	if (rc)
		return rc;
	close(place.fd);
	temporary = torsh_private_path(&place);
	torsh_database_open(&sqlite.database, temporary);
	know_processes(&sqlite);
	torsh_sqlite_calls_create(&sqlite);
	rc = insert_all(&sqlite);
	closed = torsh_database_close(&sqlite.database);
	rc = rc < 0 ? rc : closed;
	if (rc == 0)
		rc = torsh_private_keep(&place);
	else
		torsh_private_drop(&place);
	torsh_sqlite_calls_destroy(&sqlite);
	forget_processes(&sqlite);
	torsh_groups_free(&sqlite.collectives.groups);
	torsh_flops_book_destroy(sqlite.book);
	free(temporary);
	return rc;
}

const struct trace_format torsh_trace_sqlite = {.name = "sqlite",
						.ending = ".sqlite",
						.is_binary = true,
						.needs_path = true,
						.needs_heap = true,
						.write = write_sqlite};
