/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tables that only grow: modules, functions, addresses, stacks. Processes of one program share
 * them, and each row is written once.
 */
#include <stdbool.h>
#include <string.h>

#include "tools/store/recording_format.h"
#include "tools/writer/output/rows/rows_parts.h"

/*
 * Limit of the texts of modules and functions per chunk: the row that exceeds it is the chunk's
 * last.
 */
#define TEXT_BYTES (12u << 20)
#define TEXT_BYTES_MAX (64u << 10) /* per row: paths and names are shorter */

/* Upper bound of a row's size in bytes, without its texts, each of which has a tag and a length. */
#define ADDRESS_BYTES (2 * 5 + 10)
#define STACK_BYTES (2 * 5)
#define FUNCTION_BYTES (5 + 2 * 5)

#define BATCH_BYTES                                                    \
	(ROWS_BATCH * (ADDRESS_BYTES + STACK_BYTES + FUNCTION_BYTES) + \
	 2 * (TEXT_BYTES + TEXT_BYTES_MAX))

_Static_assert(BATCH_BYTES <= CHUNK_RAW_MAX, "a batch of all tables fits into one chunk");

static uint32_t batch_of(uint32_t first, uint32_t n)
{
	return n - first < ROWS_BATCH ? n - first : ROWS_BATCH;
}

static uint32_t batch_of_modules(const struct code_table *code, uint32_t first)
{
	uint32_t n = batch_of(first, code->n_modules), i = 0;

	for (size_t n_bytes = 0; i < n && n_bytes < TEXT_BYTES; i++)
		n_bytes += strlen(code->modules[first + i].path) + sizeof(code->modules->build_id) +
			   4 * 10;
	return i;
}

static uint32_t batch_of_functions(const struct code_table *code, uint32_t first)
{
	uint32_t n = batch_of(first, code->n_functions), i = 0;

	for (size_t n_bytes = 0; i < n && n_bytes < TEXT_BYTES; i++)
		n_bytes += strlen(code->functions[first + i].name) +
			   strlen(code->functions[first + i].file);
	return i;
}

void torsh_rows_make_modules(Torsh__Modules *row, struct rows_memory *memory, uint32_t first,
			     uint32_t n)
{
	ROWS_SET(row, first, first);
	ROWS_COLUMN(memory, row, bias, n);
	ROWS_COLUMN(memory, row, start, n);
	ROWS_COLUMN(memory, row, end, n);
	ROWS_COLUMN(memory, row, path, n);
	ROWS_COLUMN(memory, row, build_id, n);
}

void torsh_rows_set_module(Torsh__Modules *row, uint32_t i, const struct code_module *module)
{
	row->bias[i] = module->bias;
	row->start[i] = module->start;
	row->end[i] = module->end;
	row->path[i] = module->path;
	row->build_id[i].len = module->n_build_id;
	row->build_id[i].data = (uint8_t *)(uintptr_t)module->build_id;
}

void torsh_rows_make_functions(Torsh__Functions *row, struct rows_memory *memory, uint32_t first,
			       uint32_t n)
{
	ROWS_SET(row, first, first);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, file, n);
	ROWS_COLUMN(memory, row, first_line, n);
}

void torsh_rows_set_function(Torsh__Functions *row, uint32_t i,
			     const struct code_function *function)
{
	row->name[i] = function->name;
	row->file[i] = function->file;
	row->first_line[i] = function->first_line;
}

static void put_modules(Torsh__Modules *row, struct rows_memory *memory,
			const struct program_tables *tables, uint32_t first, uint32_t n)
{
	torsh_rows_make_modules(row, memory, first, n);
	for (uint32_t i = 0; i < n; i++)
		torsh_rows_set_module(row, i, &tables->code.modules[first + i]);
}

static void put_functions(Torsh__Functions *row, struct rows_memory *memory,
			  const struct program_tables *tables, uint32_t first, uint32_t n)
{
	torsh_rows_make_functions(row, memory, first, n);
	for (uint32_t i = 0; i < n; i++)
		torsh_rows_set_function(row, i, &tables->code.functions[first + i]);
}

static void put_addresses(Torsh__Addresses *row, struct rows_memory *memory,
			  const struct program_tables *tables, uint32_t first, uint32_t n)
{
	const struct code_address *addresses = tables->code.addresses + first;

	ROWS_SET(row, first, first);
	ROWS_COLUMN(memory, row, ip, n);
	ROWS_COLUMN(memory, row, flags, n);
	ROWS_COLUMN(memory, row, module, n);
	for (uint32_t i = 0; i < n; i++) {
		row->ip[i] = addresses[i].ip;
		row->flags[i] = addresses[i].flags;
		row->module[i] = addresses[i].module;
	}
}

static void put_stacks(Torsh__Stacks *row, struct rows_memory *memory,
		       const struct program_tables *tables, uint32_t first, uint32_t n)
{
	const struct stack_table *stacks = &tables->stacks;

	ROWS_SET(row, first, first);
	ROWS_COLUMN(memory, row, parent, n);
	ROWS_COLUMN(memory, row, address, n);
	for (uint32_t i = 0; i < n; i++) {
		row->parent[i] = torsh_stacks_parent(stacks, first + i);
		row->address[i] = torsh_stacks_address(stacks, first + i);
	}
}

/*
 * Write one chunk with a batch of each; returns false if nothing was left. Rows that could not be
 * written are tried again.
 */
static bool append_batch(struct recording_file *file, const struct program_tables *tables,
			 uint32_t process, struct tables_written *written,
			 enum recording_priority priority)
{
	Torsh__Modules modules = TORSH__MODULES__INIT, *modules_row = &modules;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT, *functions_row = &functions;
	Torsh__Addresses addresses = TORSH__ADDRESSES__INIT, *addresses_row = &addresses;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *stacks_row = &stacks;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	uint32_t n_modules = batch_of_modules(&tables->code, written->n_modules);
	uint32_t n_functions = batch_of_functions(&tables->code, written->n_functions);
	uint32_t n_addresses = batch_of(written->n_addresses, tables->code.n_addresses);
	uint32_t n_stacks = batch_of(written->n_stacks, tables->stacks.n_rows);
	struct rows_memory memory = {0};
	int result;

	if (!(n_modules | n_functions | n_addresses | n_stacks))
		return false;
	ROWS_SET(&modules, process, process);
	ROWS_SET(&functions, process, process);
	ROWS_SET(&addresses, process, process);
	ROWS_SET(&stacks, process, process);
	put_modules(&modules, &memory, tables, written->n_modules, n_modules);
	put_functions(&functions, &memory, tables, written->n_functions, n_functions);
	put_addresses(&addresses, &memory, tables, written->n_addresses, n_addresses);
	put_stacks(&stacks, &memory, tables, written->n_stacks, n_stacks);
	chunk.n_modules = n_modules != 0;
	chunk.modules = &modules_row;
	chunk.n_functions = n_functions != 0;
	chunk.functions = &functions_row;
	chunk.n_addresses = n_addresses != 0;
	chunk.addresses = &addresses_row;
	chunk.n_stacks = n_stacks != 0;
	chunk.stacks = &stacks_row;
	result = torsh_recording_append(file, &chunk, priority);
	torsh_rows_free(&memory);
	if (result)
		return false;
	written->n_modules += n_modules;
	written->n_functions += n_functions;
	written->n_addresses += n_addresses;
	written->n_stacks += n_stacks;
	return true;
}

void torsh_rows_append_tables(struct recording_file *file, const struct program_tables *tables,
			      uint32_t process, struct tables_written *written,
			      enum recording_priority priority)
{
	if (!written->n_stacks)
		written->n_stacks = 1; /* the empty stack has no row */
	while (append_batch(file, tables, process, written, priority))
		;
}

/* Put the modules that are not where the tables have them. */
static void put_placements(Torsh__Placements *row, struct rows_memory *memory,
			   const struct process_code *code)
{
	uint32_t n = 0;

	ROWS_COLUMN(memory, row, module, code->n_placements);
	ROWS_COLUMN(memory, row, shift, code->n_placements);
	for (uint32_t i = 0; i < code->n_placements; i++) {
		const struct code_placement *placement = &code->placements[i];
		uint64_t bias = code->table->modules[i].bias;

		if (!placement->is_there || placement->bias == bias)
			continue;
		row->module[n] = i;
		row->shift[n++] = (int64_t)(placement->bias - bias);
	}
	row->n_module = row->n_shift = n;
}

void torsh_rows_append_placements(struct recording_file *file, struct target *target,
				  enum recording_priority priority)
{
	Torsh__Placements row = TORSH__PLACEMENTS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	const struct process_code *code = &target->state.code;
	struct rows_memory memory = {0};
	int result = 0;

	if (target->rows->n_placed == code->n_placed)
		return;
	ROWS_SET(&row, process, target->number);
	put_placements(&row, &memory, code);
	chunk.n_placements = 1;
	chunk.placements = &rows;
	if (row.n_module)
		result = torsh_recording_append(file, &chunk, priority);
	torsh_rows_free(&memory);
	if (!result)
		target->rows->n_placed = code->n_placed;
}
