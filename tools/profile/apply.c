/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Chunks into a profile's tables: one function for each message of tools/store/recording.proto. */
#include "tools/profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/die.h"
#include "tools/store/recording_format.h"

/* A file that says more than this is not believed: the tables are allocated as large as it says. */
#define STACKS_MAX (1u << 27)
#define PROCESSES_MAX (1u << 20)

static void set_text(char **text, const char *value)
{
	if (!value)
		return;
	free(*text);
	*text = torsh_need(strdup(value));
}

static void set_texts(char ***texts, size_t *n, char **values, size_t n_values)
{
	for (size_t i = 0; i < *n; i++)
		free((*texts)[i]);
	*texts = torsh_need_items(*texts, *n, n_values, sizeof(**texts));
	for (size_t i = 0; i < n_values; i++)
		(*texts)[i] = torsh_need(strdup(values[i]));
	*n = n_values;
}

/* Make items hold at least n, growing by doubling because tables arrive in pieces. */
static void *grow_table(void *items, size_t n, size_t *n_room, size_t item_bytes)
{
	size_t n_new = *n_room ? *n_room : 64;

	if (n <= *n_room)
		return items;
	while (n_new < n)
		n_new *= 2;
	items = torsh_need_items(items, *n_room, n_new, item_bytes);
	*n_room = n_new;
	return items;
}

/* The one with that number in a list in their order; made when it is new. */
static struct profile_process *find_in(struct profile *profile, struct profile_process ***list, size_t *n,
				       uint32_t number)
{
	struct profile_process *process;
	size_t i = *n;

	while (i > 0 && (*list)[i - 1]->number > number)
		i--;
	if (i > 0 && (*list)[i - 1]->number == number)
		return (*list)[i - 1];
	if (*n >= PROCESSES_MAX) {
		profile->n_bad_rows++;
		return NULL;
	}
	process = torsh_need(calloc(1, sizeof(*process)));
	process->number = number;
	*list = torsh_need_items(*list, *n, *n + 1, sizeof(process));
	memmove(*list + i + 1, *list + i, (*n - i) * sizeof(process));
	(*list)[i] = process;
	++*n;
	return process;
}

static void apply_pauses(struct profile *profile, const Torsh__Session *row)
{
	if (row->n_resumed_ns > row->n_paused_ns) {
		profile->n_bad_rows++;
		return;
	}
	profile->pauses =
		torsh_need_items(profile->pauses, profile->n_pauses, row->n_paused_ns, sizeof(*profile->pauses));
	profile->n_pauses = row->n_paused_ns;
	for (size_t i = 0; i < profile->n_pauses; i++) {
		bool has_end = i < row->n_resumed_ns;

		profile->pauses[i] = (struct profile_pause){
			.from_ns = row->paused_ns[i],
			.until_ns = has_end ? row->resumed_ns[i] : 0,
			.lasts = !has_end,
		};
	}
}

/* Its tables may come before its own row. */
static struct profile_process *find_process(struct profile *profile, uint32_t number)
{
	struct profile_process *process = torsh_profile_process(profile, number);

	return process ? process : find_in(profile, &profile->processes, &profile->n_processes, number);
}

static int apply_session(struct profile *profile, const Torsh__Session *row)
{
	if (row->has_format && (row->format < RECORDING_FORMAT_OLDEST || row->format > RECORDING_FORMAT))
		return -EPROTO;
	profile->has_session = true;
	profile->format = row->format;
	set_text(&profile->agent_version, row->agent_version);
	set_text(&profile->host, row->host);
	set_text(&profile->record, row->record);
	profile->start_realtime_ns = row->start_realtime_ns;
	profile->writer_pid = row->writer_pid;
	set_text(&profile->snapshot_of, row->recording);
	profile->snapshot_ns = row->taken_ns;
	profile->without_flops = row->without_flops;
	apply_pauses(profile, row);
	return 0;
}

static void apply_counters(struct profile_process *process, Torsh__Counter **counters, size_t n)
{
	for (size_t i = 0; i < process->n_counters; i++)
		free(process->counters[i].name);
	process->counters = torsh_need_items(process->counters, process->n_counters, n, sizeof(*process->counters));
	for (size_t i = 0; i < n; i++) {
		process->counters[i].name = torsh_need(strdup(counters[i]->name ? counters[i]->name : ""));
		process->counters[i].value = counters[i]->value;
	}
	process->n_counters = n;
}

static void take_process(struct profile_process *process, const Torsh__Process *row)
{
	process->pid = row->pid;
	process->parent_pid = row->parent_pid;
	process->forked_from = row->forked_from;
	process->executed_from = row->executed_from;
	set_text(&process->program, row->program);
	set_texts(&process->arguments, &process->n_arguments, row->arguments, row->n_arguments);
	process->start_ns = row->start_ns;
	process->has_end_ns = row->has_end_ns;
	process->end_ns = row->end_ns;
	process->end = row->end;
	process->has_end_code = row->has_end_code;
	process->end_code = row->end_code;
	set_text(&process->allocator, row->allocator);
	set_text(&process->rank, row->rank);
	set_text(&process->clock, row->clock);
	set_texts(&process->notes, &process->n_notes, row->notes, row->n_notes);
	apply_counters(process, row->counters, row->n_counters);
	process->produced = row->produced;
	process->delivered = row->delivered;
	process->dropped = row->dropped;
	process->uncommitted = row->uncommitted;
	process->has_rss_peak = row->has_rss_peak_bytes;
	process->rss_peak_bytes = row->rss_peak_bytes;
	set_text(&process->rss_peak_source, row->rss_peak_source);
	process->ring_bytes_read = row->ring_bytes_read;
	process->waited_ns = row->waited_ns;
}

static void apply_process(struct profile *profile, const Torsh__Process *row)
{
	struct profile_process *process = find_process(profile, row->process);

	if (process)
		take_process(process, row);
}

static void apply_unfollowed(struct profile *profile, const Torsh__Unfollowed *row)
{
	struct profile_process *process;

	if (!row->process) {
		profile->n_bad_rows++;
		return;
	}
	process = find_in(profile, &profile->unfollowed, &profile->n_unfollowed, row->process->process);
	if (!process)
		return;
	take_process(process, row->process);
	set_text(&process->not_followed, row->reason ? row->reason : "");
}

static void apply_modules(struct profile *profile, const Torsh__Modules *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_path, end = row->first + n;

	if (!process || !n)
		return;
	if (row->first > CHANNEL_MODULES || end > CHANNEL_MODULES || row->n_bias != n || row->n_start != n ||
	    row->n_end != n || (row->n_build_id && row->n_build_id != n)) {
		profile->n_bad_rows++;
		return;
	}
	if (end > process->n_modules) {
		process->modules =
			torsh_need_items(process->modules, process->n_modules, end, sizeof(*process->modules));
		process->n_modules = end;
	}
	for (size_t i = 0; i < n; i++) {
		struct profile_module *module = &process->modules[row->first + i];

		module->bias = row->bias[i];
		module->start = row->start[i];
		module->end = row->end[i];
		set_text(&module->path, row->path[i]);
		if (row->n_build_id) {
			const ProtobufCBinaryData *id = &row->build_id[i];

			module->build_id = torsh_need_items(module->build_id, 0, id->len, 1);
			if (id->len)
				memcpy(module->build_id, id->data, id->len);
			module->n_build_id = id->len;
		}
	}
}

static void apply_functions(struct profile *profile, const Torsh__Functions *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_name, end = row->first + n;

	if (!process || !n)
		return;
	if (end > CHANNEL_CODES || row->n_file != n || row->n_first_line != n) {
		profile->n_bad_rows++;
		return;
	}
	process->functions = grow_table(process->functions, end, &process->functions_room, sizeof(*process->functions));
	if (end > process->n_functions)
		process->n_functions = end;
	for (size_t i = 0; i < n; i++) {
		struct profile_function *function = &process->functions[row->first + i];

		set_text(&function->name, row->name[i]);
		set_text(&function->file, row->file[i]);
		function->first_line = row->first_line[i];
	}
}

static void apply_addresses(struct profile *profile, const Torsh__Addresses *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_ip, end = row->first + n;

	if (!process || !n)
		return;
	if (end > CHANNEL_ADDRESSES || row->n_flags != n || row->n_module != n) {
		profile->n_bad_rows++;
		return;
	}
	process->addresses = grow_table(process->addresses, end, &process->addresses_room, sizeof(*process->addresses));
	/* What lies between was never sent: it must not pass for the first symbol and module. */
	for (size_t i = process->n_addresses; i < end; i++)
		process->addresses[i] = (struct profile_address){.module = CHANNEL_NO_MODULE, .symbol = PROFILE_NO_ROW};
	if (end > process->n_addresses)
		process->n_addresses = end;
	for (size_t i = 0; i < n; i++) {
		struct profile_address *address = &process->addresses[row->first + i];

		address->ip = row->ip[i];
		address->flags = row->flags[i];
		process->has_python |= address->flags == ADDRESS_PYTHON;
		address->module = row->module[i];
	}
}

static void apply_symbols(struct profile *profile, const Torsh__Symbols *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t base;

	if (!process)
		return;
	if (row->n_symbol != row->n_address || row->n_offset != row->n_address) {
		profile->n_bad_rows++;
		return;
	}
	base = process->n_symbols;
	process->symbols =
		grow_table(process->symbols, base + row->n_name, &process->symbols_room, sizeof(*process->symbols));
	for (size_t i = 0; i < row->n_name; i++)
		process->symbols[base + i] = torsh_need(strdup(row->name[i]));
	process->n_symbols = base + row->n_name;
	for (size_t i = 0; i < row->n_address; i++) {
		if (row->address[i] >= process->n_addresses || row->symbol[i] >= row->n_name) {
			profile->n_bad_rows++;
			continue;
		}
		process->addresses[row->address[i]].symbol = (uint32_t)(base + row->symbol[i]);
		process->addresses[row->address[i]].symbol_offset = row->offset[i];
	}
}

static void apply_stacks(struct profile *profile, const Torsh__Stacks *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_parent, end = (size_t)row->first + n;

	if (!process || !n)
		return;
	if (!row->first || end > STACKS_MAX || row->n_address != n) {
		profile->n_bad_rows++;
		return;
	}
	process->stacks = grow_table(process->stacks, end, &process->stacks_room, sizeof(*process->stacks));
	if (end > process->n_stacks)
		process->n_stacks = end;
	for (size_t i = 0; i < n; i++) {
		uint32_t parent = row->parent[i];

		/* A parent is older than its children, or a walk would never end. */
		if (parent >= row->first + i) {
			profile->n_bad_rows++;
			parent = 0;
		}
		process->stacks[row->first + i] = (struct profile_stack){.parent = parent, .address = row->address[i]};
	}
}

/* The row of that stack, made when it is new. NULL: the number is not believed. */
static void *take_row(struct profile *profile, struct profile_rows *rows, uint32_t stack, size_t item_bytes)
{
	char *row;

	if (stack >= STACKS_MAX) {
		profile->n_bad_rows++;
		return NULL;
	}
	rows->row_of = grow_table(rows->row_of, (size_t)stack + 1, &rows->n_row_of, sizeof(*rows->row_of));
	if (rows->row_of[stack])
		return (char *)rows->items + (rows->row_of[stack] - 1) * item_bytes;
	rows->items = torsh_need_room(rows->items, rows->n, &rows->n_room, item_bytes);
	row = (char *)rows->items + rows->n * item_bytes;
	memset(row, 0, item_bytes);
	rows->row_of[stack] = (uint32_t)++rows->n;
	return row;
}

static void clear_rows(struct profile_rows *rows)
{
	if (rows->n_row_of)
		memset(rows->row_of, 0, rows->n_row_of * sizeof(*rows->row_of));
	rows->n = 0;
}

/* Of a column that may be left out. */
static uint32_t number_at(const uint32_t *column, size_t n_column, size_t i)
{
	return i < n_column ? column[i] : 0;
}

static void apply_totals(struct profile *profile, const Torsh__StackTotals *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_allocs != n || row->n_alloc_bytes != n || row->n_temporary != n || row->n_temporary_bytes != n ||
	    row->n_seen != n || row->n_base_blocks != n || row->n_base_bytes != n || row->n_delta_blocks != n ||
	    row->n_delta_bytes != n) {
		profile->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct profile_total *total =
			take_row(profile, &process->totals, row->stack[i], sizeof(struct profile_total));

		if (!total)
			continue;
		*total = (struct profile_total){
			.stack = row->stack[i],
			.seen = row->seen[i],
			.allocs = row->allocs[i],
			.alloc_bytes = row->alloc_bytes[i],
			.temporary = row->temporary[i],
			.temporary_bytes = row->temporary_bytes[i],
			.base_blocks = row->base_blocks[i],
			.base_bytes = row->base_bytes[i],
			.delta_blocks = row->delta_blocks[i],
			.delta_bytes = row->delta_bytes[i],
			.operator = number_at(row->in_operator, row->n_in_operator, i),
			.module = number_at(row->in_module, row->n_in_module, i),
			.first_step = number_at(row->step_of_first, row->n_step_of_first, i),
			.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			.base_first_step = number_at(row->base_step_of_first, row->n_base_step_of_first, i),
			.base_last_step = number_at(row->base_step_of_last, row->n_base_step_of_last, i),
		};
	}
}

static void apply_heap(struct profile *profile, const Torsh__Heap *row)
{
	struct profile_process *process = find_process(profile, row->process);
	struct profile_heap *heap;

	if (!process)
		return;
	heap = &process->heap;
	*heap = (struct profile_heap){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_blocks = row->peak_blocks,
		.peak_ns = row->peak_ns,
		.current_bytes = row->current_bytes,
		.current_blocks = row->current_blocks,
		.current_usable_bytes = row->current_usable_bytes,
		.allocs = row->allocs,
		.frees = row->frees,
		.alloc_bytes = row->alloc_bytes,
		.reallocs = row->reallocs,
		.temporary = row->temporary,
		.unknown_frees = row->unknown_frees,
		.pause_frees = row->pause_frees,
		.implicit_frees = row->implicit_frees,
		.late_events = row->late_events,
		.has_inherited_blocks = row->has_inherited_blocks,
		.has_inherited_bytes = row->has_inherited_bytes,
		.inherited_blocks = row->inherited_blocks,
		.inherited_bytes = row->inherited_bytes,
		.inherited_frees = row->inherited_frees,
	};
	for (size_t i = 0; i < row->n_size_blocks && i < PROFILE_SIZE_CLASSES; i++)
		heap->size_blocks[i] = row->size_blocks[i];
}

static uint64_t column_at(const uint64_t *column, size_t n_column, size_t i)
{
	return i < n_column ? column[i] : 0;
}

static void apply_live(struct profile *profile, const Torsh__Live *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_blocks != n || row->n_bytes != n) {
		profile->n_bad_rows++;
		return;
	}
	/* A large one may come in pieces, which then bear the same time. */
	if (!process->has_live || row->at_ns != process->live_ns)
		clear_rows(&process->live);
	process->has_live = true;
	process->live_ns = row->at_ns;
	process->usable_is_known = row->usable_is_known;
	for (size_t i = 0; i < n; i++) {
		struct profile_live *live =
			take_row(profile, &process->live, row->stack[i], sizeof(struct profile_live));

		if (!live)
			continue;
		*live = (struct profile_live){
			.stack = row->stack[i],
			.blocks = row->blocks[i],
			.bytes = row->bytes[i],
			.usable_bytes = column_at(row->usable_bytes, row->n_usable_bytes, i),
			.first_ns = column_at(row->first_ns, row->n_first_ns, i),
			.last_ns = column_at(row->last_ns, row->n_last_ns, i),
			.first_step = number_at(row->step_of_first, row->n_step_of_first, i),
			.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			.inherited_blocks = column_at(row->inherited_blocks, row->n_inherited_blocks, i),
			.inherited_bytes = column_at(row->inherited_bytes, row->n_inherited_bytes, i),
		};
	}
}

static void apply_growth(struct profile *profile, const Torsh__Growth *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_parts != n || row->n_late_blocks != n || row->n_late_bytes != n || row->n_is_tensor != n) {
		profile->n_bad_rows++;
		return;
	}
	clear_rows(&process->survivors);
	process->steps = (struct profile_steps){
		.rule = row->rule,
		.n_parts = row->part_count,
		.n_steps = row->n_steps,
		.late_steps = row->late_steps,
	};
	for (size_t i = 0; i < n; i++) {
		struct profile_survivors *survivors = take_row(profile, &process->survivors, row->stack[i],
							       sizeof(struct profile_survivors));

		if (survivors)
			*survivors = (struct profile_survivors){
				.stack = row->stack[i],
				.is_tensor = row->is_tensor[i],
				.parts = row->parts[i],
				.late_blocks = row->late_blocks[i],
				.late_bytes = row->late_bytes[i],
				.early_blocks = column_at(row->early_blocks, row->n_early_blocks, i),
				.last_blocks = column_at(row->last_blocks, row->n_last_blocks, i),
			};
	}
}

static void apply_mappings(struct profile *profile, const Torsh__Mappings *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	process->vm = (struct profile_vm){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_ns = row->peak_ns,
		.current_bytes = row->current_bytes,
		.maps = row->maps,
		.unmaps = row->unmaps,
		.advised_bytes = row->advised_bytes,
	};
	if (row->n_seen != n || row->n_base_pieces != n || row->n_base_bytes != n || row->n_delta_pieces != n ||
	    row->n_delta_bytes != n || row->n_total_bytes != n) {
		profile->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct profile_mapping *mapping =
			take_row(profile, &process->mappings, row->stack[i], sizeof(struct profile_mapping));

		if (!mapping)
			continue;
		*mapping = (struct profile_mapping){
			.stack = row->stack[i],
			.seen = row->seen[i],
			.base_pieces = row->base_pieces[i],
			.base_bytes = row->base_bytes[i],
			.delta_pieces = row->delta_pieces[i],
			.delta_bytes = row->delta_bytes[i],
			.total_bytes = row->total_bytes[i],
		};
	}
}

/* A tid comes back when its thread has ended: the start tells the two apart. */
static struct profile_thread *find_thread(struct profile_process *process, uint32_t tid, uint64_t start_ns)
{
	struct profile_thread *thread;

	for (size_t i = process->n_threads; i-- > 0;) {
		thread = &process->threads[i];
		if (thread->tid == tid && thread->start_ns == start_ns)
			return thread;
	}
	process->threads =
		torsh_need_room(process->threads, process->n_threads, &process->threads_room, sizeof(*thread));
	thread = &process->threads[process->n_threads++];
	*thread = (struct profile_thread){.tid = tid, .start_ns = start_ns};
	return thread;
}

static void apply_threads(struct profile *profile, const Torsh__Threads *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_tid;

	if (!process)
		return;
	if (row->n_name != n || row->n_start_ns != n || row->n_end_ns != n || row->n_allocs != n ||
	    row->n_alloc_bytes != n || row->n_frees != n || row->n_dropped != n) {
		profile->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct profile_thread *thread = find_thread(process, row->tid[i], row->start_ns[i]);

		set_text(&thread->name, row->name[i]);
		thread->end_ns = row->end_ns[i];
		thread->allocs = row->allocs[i];
		thread->alloc_bytes = row->alloc_bytes[i];
		thread->frees = row->frees[i];
		thread->dropped = row->dropped[i];
	}
}

static void apply_series(struct profile *profile, const Torsh__Series *row)
{
	struct profile_process *process = find_process(profile, row->process);
	size_t n = row->n_at_ns;

	if (!process)
		return;
	if (row->n_heap_bytes != n || row->n_mapped_bytes != n || row->n_rss_bytes != n) {
		profile->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		process->series = torsh_need_room(process->series, process->n_series, &process->series_room,
						  sizeof(*process->series));
		process->series[process->n_series++] = (struct profile_sample){
			.at_ns = row->at_ns[i],
			.heap_bytes = row->heap_bytes[i],
			.mapped_bytes = row->mapped_bytes[i],
			.rss_bytes = row->rss_bytes[i],
		};
	}
}

/* An earlier peak's shares are gone. */
static void apply_joint_sum(struct profile *profile, const Torsh__Joint *row)
{
	struct profile_joint *joint = &profile->joint;

	if (joint->is_there && joint->peak_number == row->peak_number)
		return;
	for (size_t i = 0; i < profile->n_processes; i++)
		clear_rows(&profile->processes[i]->joint_shares);
	*joint = (struct profile_joint){
		.is_there = true,
		.peak_number = row->peak_number,
		.peak_bytes = row->peak_bytes,
		.peak_blocks = row->peak_blocks,
		.peak_ns = row->peak_ns,
	};
}

static void apply_joint(struct profile *profile, const Torsh__Joint *row)
{
	size_t n = row->n_stack;
	struct profile_process *process;

	apply_joint_sum(profile, row);
	profile->joint.late_changes = row->late_changes;
	process = row->has_process ? find_process(profile, row->process) : NULL;
	if (!process)
		return;
	if (row->n_blocks != n || row->n_bytes != n) {
		profile->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct profile_joint_share *share = take_row(profile, &process->joint_shares, row->stack[i],
							     sizeof(struct profile_joint_share));

		if (share)
			*share = (struct profile_joint_share){
				.stack = row->stack[i],
				.blocks = row->blocks[i],
				.bytes = row->bytes[i],
				.first_step = number_at(row->step_of_first, row->n_step_of_first, i),
				.last_step = number_at(row->step_of_last, row->n_step_of_last, i),
			};
	}
}

static void apply_end(struct profile *profile, const Torsh__End *end)
{
	profile->has_end = true;
	profile->is_complete = end->complete;
	profile->end_ns = end->at_ns;
	set_texts(&profile->reasons, &profile->n_reasons, end->reasons, end->n_reasons);
}

int torsh_profile_apply(struct profile *profile, const Torsh__Chunk *chunk)
{
	int rc = chunk->session ? apply_session(profile, chunk->session) : 0;

	if (rc < 0)
		return rc;
#define APPLY_ALL(field, function)                    \
	for (size_t i = 0; i < chunk->n_##field; i++) \
		function(profile, chunk->field[i]);
	APPLY_ALL(process, apply_process)
	APPLY_ALL(unfollowed, apply_unfollowed)
	APPLY_ALL(modules, apply_modules)
	APPLY_ALL(functions, apply_functions)
	APPLY_ALL(addresses, apply_addresses)
	APPLY_ALL(symbols, apply_symbols)
	APPLY_ALL(stacks, apply_stacks)
	APPLY_ALL(stack_totals, apply_totals)
	APPLY_ALL(heap, apply_heap)
	APPLY_ALL(live, apply_live)
	APPLY_ALL(growth, apply_growth)
	APPLY_ALL(mappings, apply_mappings)
	APPLY_ALL(threads, apply_threads)
	APPLY_ALL(series, apply_series)
	APPLY_ALL(joint, apply_joint)
#undef APPLY_ALL
	if (chunk->end)
		apply_end(profile, chunk->end);
	return 0;
}
