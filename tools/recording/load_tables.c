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

void torsh_load_modules(struct recording *recording, const Torsh__Modules *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_path, end = row->first + n;

	if (!process || !n)
		return;
	if (end > CHANNEL_MODULES || row->n_bias != n || row->n_start != n || row->n_end != n ||
	    (row->n_build_id && row->n_build_id != n)) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->n_modules, row->first,
				  sizeof(*process->modules)))
		return;
	if (end > process->n_modules) {
		process->modules = torsh_need_items(process->modules, process->n_modules, end,
						    sizeof(*process->modules));
		process->n_modules = end;
	}
	for (size_t i = 0; i < n; i++) {
		struct recorded_module *module = &process->modules[row->first + i];

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
	if (end > CHANNEL_CODES || row->n_file != n || row->n_first_line != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->n_functions, row->first,
				  sizeof(*process->functions)))
		return;
	process->functions = torsh_array_extend(process->functions, end, &process->functions_room,
						sizeof(*process->functions));
	if (end > process->n_functions)
		process->n_functions = end;
	for (size_t i = 0; i < n; i++) {
		struct recorded_function *function = &process->functions[row->first + i];

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
	if (end > CHANNEL_ADDRESSES || row->n_flags != n || row->n_module != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->n_addresses, row->first,
				  sizeof(*process->addresses)))
		return;
	process->addresses = torsh_array_extend(process->addresses, end, &process->addresses_room,
						sizeof(*process->addresses));
	/* Numbers in a gap were never sent: they must not refer to the first symbol and module. */
	for (size_t i = process->n_addresses; i < end; i++)
		process->addresses[i] = (struct recorded_address){.module = CHANNEL_NO_MODULE,
								  .symbol = PROFILE_NO_ROW};
	if (end > process->n_addresses)
		process->n_addresses = end;
	for (size_t i = 0; i < n; i++) {
		struct recorded_address *address = &process->addresses[row->first + i];

		address->ip = row->ip[i];
		address->flags = row->flags[i];
		process->has_python |= address->flags == ADDRESS_PYTHON;
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
	base = process->n_symbols;
	process->symbols = torsh_array_extend(process->symbols, base + row->n_name,
					      &process->symbols_room, sizeof(*process->symbols));
	for (size_t i = 0; i < row->n_name; i++)
		process->symbols[base + i] = torsh_need(strdup(row->name[i]));
	process->n_symbols = base + row->n_name;
	for (size_t i = 0; i < row->n_address; i++) {
		if (row->address[i] >= process->n_addresses || row->symbol[i] >= row->n_name) {
			recording->n_bad_rows++;
			continue;
		}
		process->addresses[row->address[i]].symbol = (uint32_t)(base + row->symbol[i]);
		process->addresses[row->address[i]].symbol_offset = row->offset[i];
	}
}

/* A stack never changes once it is set: a changed parent could make an endless chain. */
static void set_stack(struct recording *recording, struct recorded_process *process,
		      uint32_t number, uint32_t parent, uint32_t address)
{
	struct recorded_stack *stack = &process->stacks[number];
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
	depth = parent ? process->stacks[parent].depth + 1 : 1;
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

void torsh_load_stacks(struct recording *recording, const Torsh__Stacks *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_parent, end = (size_t)row->first + n;

	if (!process || !n)
		return;
	if (!row->first || end > STACKS_MAX || row->n_address != n) {
		recording->n_bad_rows++;
		return;
	}
	if (!torsh_load_can_reach(recording, process->n_stacks, row->first,
				  sizeof(*process->stacks)))
		return;
	process->stacks = torsh_array_extend(process->stacks, end, &process->stacks_room,
					     sizeof(*process->stacks));
	if (end > process->n_stacks)
		process->n_stacks = end;
	for (size_t i = 0; i < n; i++)
		set_stack(recording, process, row->first + (uint32_t)i, row->parent[i],
			  row->address[i]);
}
