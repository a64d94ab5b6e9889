/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads chunks with tables that others refer to: modules, functions, addresses and stacks. The
 * functions are alike, but each checks and copies the columns of a different message type.
 */
#include "tools/base/containers/array.h"
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"

/* Returns true if no row of these tables is loaded. */
static bool is_empty(const struct recorded_tables *tables)
{
	return !tables->n_modules && !tables->n_functions && !tables->n_addresses &&
	       !tables->n_symbols && !tables->n_stacks;
}

void torsh_load_tables_of(struct recording *recording, struct recorded_process *process,
			  uint32_t number)
{
	struct recorded_process *owner = torsh_load_process_of(recording, number);

	if (!owner || owner->tables == process->tables)
		return;
	if (!is_empty(process->tables)) {
		recording->n_bad_rows++;
		return;
	}
	torsh_tables_leave(process->tables);
	process->tables = owner->tables;
	process->tables->n_users++;
}

void torsh_load_placements(struct recording *recording, const Torsh__Placements *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);

	if (!process)
		return;
	if (row->n_module != row->n_shift) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < row->n_module; i++) {
		uint32_t module = row->module[i];

		if (module >= process->tables->n_modules) {
			recording->n_bad_rows++;
			continue;
		}
		if (module >= process->n_shifts) {
			process->shifts =
				torsh_need_items(process->shifts, process->n_shifts,
						 process->tables->n_modules, sizeof(uint64_t));
			process->n_shifts = process->tables->n_modules;
		}
		process->shifts[module] = (uint64_t)row->shift[i];
	}
}

void torsh_load_modules(struct recording *recording, const Torsh__Modules *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_path, end = row->first + n;

	if (!process || !n)
		return;
	if (end > MODULES_MAX || row->n_bias != n || row->n_start != n || row->n_end != n ||
	    (row->n_build_id && row->n_build_id != n)) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->tables->n_modules, row->first,
				  sizeof(*process->tables->modules)))
		return;
	if (end > process->tables->n_modules) {
		process->tables->modules =
			torsh_need_items(process->tables->modules, process->tables->n_modules, end,
					 sizeof(*process->tables->modules));
		process->tables->n_modules = end;
	}
	for (size_t i = 0; i < n; i++) {
		struct recorded_module *module = &process->tables->modules[row->first + i];

		module->bias = row->bias[i];
		module->start = row->start[i];
		module->end = row->end[i];
		torsh_load_text(&module->path, row->path[i]);
		if (row->n_build_id) {
			const ProtobufCBinaryData *id = &row->build_id[i];

			module->build_id = torsh_need_items(module->build_id, 0, id->len, 1);
			if (id->len)
				memcpy(module->build_id, id->data, id->len);
			module->n_build_id = id->len;
		}
	}
}

void torsh_load_functions(struct recording *recording, const Torsh__Functions *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_name, end = row->first + n;

	if (!process || !n)
		return;
	if (end > FUNCTIONS_MAX || row->n_file != n || row->n_first_line != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->tables->n_functions, row->first,
				  sizeof(*process->tables->functions)))
		return;
	process->tables->functions = torsh_array_extend(process->tables->functions, end,
							&process->tables->functions_room,
							sizeof(*process->tables->functions));
	if (end > process->tables->n_functions)
		process->tables->n_functions = end;
	for (size_t i = 0; i < n; i++) {
		struct recorded_function *function = &process->tables->functions[row->first + i];

		torsh_load_text(&function->name, row->name[i]);
		torsh_load_text(&function->file, row->file[i]);
		function->first_line = row->first_line[i];
	}
}

void torsh_load_addresses(struct recording *recording, const Torsh__Addresses *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_ip, end = row->first + n;

	if (!process || !n)
		return;
	if (end > PROFILE_NO_ADDRESS || row->n_flags != n || row->n_module != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->tables->n_addresses, row->first,
				  sizeof(*process->tables->addresses)))
		return;
	process->tables->addresses = torsh_array_extend(process->tables->addresses, end,
							&process->tables->addresses_room,
							sizeof(*process->tables->addresses));
	/* Numbers in a gap were never sent: they must not refer to the first symbol and module. */
	for (size_t i = process->tables->n_addresses; i < end; i++)
		process->tables->addresses[i] = (struct recorded_address){
			.module = CHANNEL_NO_MODULE, .symbol = PROFILE_NO_ROW};
	if (end > process->tables->n_addresses)
		process->tables->n_addresses = end;
	for (size_t i = 0; i < n; i++) {
		struct recorded_address *address = &process->tables->addresses[row->first + i];

		address->ip = row->ip[i];
		address->flags = row->flags[i];
		process->tables->has_python |= address->flags == ADDRESS_PYTHON;
		address->module = row->module[i];
	}
}

void torsh_load_symbols(struct recording *recording, const Torsh__Symbols *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t base;

	if (!process)
		return;
	if (row->n_symbol != row->n_address || row->n_offset != row->n_address) {
		recording->n_bad_rows++;
		return;
	}
	base = process->tables->n_symbols;
	process->tables->symbols = torsh_array_extend(process->tables->symbols, base + row->n_name,
						      &process->tables->symbols_room,
						      sizeof(*process->tables->symbols));
	for (size_t i = 0; i < row->n_name; i++)
		process->tables->symbols[base + i] = torsh_need(strdup(row->name[i]));
	process->tables->n_symbols = base + row->n_name;
	for (size_t i = 0; i < row->n_address; i++) {
		if (row->address[i] >= process->tables->n_addresses ||
		    row->symbol[i] >= row->n_name) {
			recording->n_bad_rows++;
			continue;
		}
		process->tables->addresses[row->address[i]].symbol =
			(uint32_t)(base + row->symbol[i]);
		process->tables->addresses[row->address[i]].symbol_offset = row->offset[i];
	}
}

/* A stack never changes once it is set: a changed parent could make an endless chain. */
static void set_stack(struct recording *recording, struct recorded_process *process,
		      uint32_t number, uint32_t parent, uint32_t address)
{
	struct recorded_stack *stack = &process->tables->stacks[number];
	uint32_t depth;

	if (address > PROFILE_NO_ADDRESS)
		address = PROFILE_NO_ADDRESS;
	/*
	 * A parent has a lower number than its children; otherwise a chain of parents could be
	 * endless.
	 */
	if (parent >= number) {
		recording->n_bad_rows++;
		parent = 0;
	}
	depth = parent ? process->tables->stacks[parent].depth + 1 : 1;
	if (depth > CHANNEL_STACK_MAX) {
		recording->n_bad_rows++;
		parent = 0;
		depth = 1;
	}
	if (stack->depth)
		recording->n_bad_rows += stack->parent != parent || stack->address != address;
	else
		*stack = (struct recorded_stack){
			.parent = parent, .address = address, .depth = depth};
}

/* Returns true if the process's table can have n stacks from `first` on; then it has room. */
static bool begin_stacks(struct recording *recording, struct recorded_process *process,
			 uint32_t first, size_t n, size_t n_addresses)
{
	struct recorded_tables *tables = process->tables;
	size_t end = (size_t)first + n;

	if (!first || end > STACKS_MAX || n_addresses != n) {
		recording->n_bad_rows++;
		return false;
	}
	if (!torsh_load_can_reach(recording, tables->n_stacks, first, sizeof(*tables->stacks)))
		return false;
	tables->stacks = torsh_array_extend(tables->stacks, end, &tables->stacks_room,
					    sizeof(*tables->stacks));
	if (end > tables->n_stacks)
		tables->n_stacks = end;
	return true;
}

void torsh_load_stacks(struct recording *recording, const Torsh__Stacks *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_parent;

	if (!process || !n || !begin_stacks(recording, process, row->first, n, row->n_address))
		return;
	for (size_t i = 0; i < n; i++)
		set_stack(recording, process, row->first + (uint32_t)i, row->parent[i],
			  row->address[i]);
}

/* As torsh_load_stacks; torsh_delta_decode has the meaning of parent_back. */
void torsh_load_packed_stacks(struct recording *recording, const struct packed_message *row)
{
	enum { PROCESS = 1, FIRST = 2, PARENT = 3, ADDRESS = 4, PARENT_BACK = 5 };
	struct recorded_process *process =
		torsh_load_process_of(recording, (uint32_t)row->numbers[PROCESS]);
	bool is_back = row->columns[PARENT_BACK].n && !row->columns[PARENT].n;
	struct packed_column parents = row->columns[is_back ? PARENT_BACK : PARENT],
			     addresses = row->columns[ADDRESS];
	uint32_t first = (uint32_t)row->numbers[FIRST];
	size_t n = parents.n;

	if (!process || !n || !begin_stacks(recording, process, first, n, addresses.n))
		return;
	for (uint32_t stack = first; stack < first + n; stack++) {
		uint32_t parent = (uint32_t)torsh_packed_varint(&parents.at);

		set_stack(recording, process, stack, is_back ? stack - parent : parent,
			  (uint32_t)torsh_packed_varint(&addresses.at));
	}
}
