/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Function names for the addresses of a program, module by module. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/memory.h"
#include "tools/writer/output/rows/rows_parts.h"

/* The addresses of one module. */
struct lookups {
	uint32_t *numbers;
	uint64_t *call_addresses; /* addresses within the call instruction, not after it */
	uint64_t *exact; /* the addresses themselves, as in the file */
	struct symbol_name *names;
	uint32_t n;
};

/* The numbers of addresses with code by their modules: those of module m begin at starts[m]. */
struct grouped {
	uint32_t *numbers, *starts;
};

/* Pseudo-addresses and Python lines have no native code. */
static bool is_code(const struct code_address *address)
{
	return address->flags < ADDRESS_PYTHON && address->ip;
}

static bool is_in_module(const struct code_table *code, uint32_t number)
{
	const struct code_address *address = &code->addresses[number];

	return is_code(address) && address->module < code->n_modules;
}

/* Group the wanted addresses, each of which is in a module. */
static struct grouped group_addresses(struct rows_memory *memory, const struct code_table *code,
				      const bool *is_wanted, uint32_t n)
{
	struct grouped grouped = {
		.numbers = torsh_rows_memory(memory, n, sizeof(*grouped.numbers)),
		.starts = torsh_rows_memory(memory, (size_t)code->n_modules + 2,
					    sizeof(*grouped.starts)),
	};
	uint32_t *next = grouped.starts + 1;

	/* next[m] becomes the start of module m, and then its end, which is the start of m + 1. */
	for (uint32_t i = 0; i < code->n_addresses; i++) {
		if (is_wanted[i])
			next[code->addresses[i].module + 1]++;
	}
	for (uint32_t i = 1; i <= code->n_modules; i++)
		next[i] += next[i - 1];
	for (uint32_t i = 0; i < code->n_addresses; i++) {
		if (is_wanted[i])
			grouped.numbers[next[code->addresses[i].module]++] = i;
	}
	return grouped;
}

/*
 * Set is_wanted for the addresses without a name so far that the target referred to, or for all if
 * no other process has the tables. Returns their number.
 */
static uint32_t choose_addresses(const struct target *target, bool *is_wanted)
{
	struct program_tables *tables = target->state.tables;
	uint32_t n = tables->code.n_addresses, n_wanted = 0;

	tables->is_named = torsh_array_extend(tables->is_named, n, &tables->n_is_named,
					      sizeof(*tables->is_named));
	if (tables->n_users == 1)
		memset(is_wanted, true, n);
	else
		torsh_process_code_mark(&target->state.code, is_wanted);
	for (uint32_t i = 0; i < n; i++) {
		is_wanted[i] =
			is_wanted[i] && !tables->is_named[i] && is_in_module(&tables->code, i);
		tables->is_named[i] |= is_wanted[i];
		n_wanted += is_wanted[i];
	}
	return n_wanted;
}

static void collect_module(struct lookups *lookups, const struct code_table *code,
			   const struct grouped *grouped, uint32_t module)
{
	lookups->n = 0;
	for (uint32_t i = grouped->starts[module]; i < grouped->starts[module + 1]; i++) {
		const struct code_address *address = &code->addresses[grouped->numbers[i]];
		uint64_t exact = address->ip - code->modules[module].bias;

		lookups->numbers[lookups->n] = grouped->numbers[i];
		lookups->exact[lookups->n] = exact;
		lookups->call_addresses[lookups->n++] =
			address->flags & (ADDRESS_EXACT | ADDRESS_SIGNAL_FRAME) ? exact : exact - 1;
	}
}

/* The book has a name for each address; addresses of one function have one start. */
static void put_names(Torsh__Symbols *row, const struct lookups *lookups, struct key_index *known)
{
	for (uint32_t i = 0; i < lookups->n; i++) {
		const struct symbol_name *name = &lookups->names[i];
		struct key_slot *slot;

		if (!name->name)
			continue;
		slot = torsh_key_index_find(known, name->start + 1);
		if (!slot->key) {
			row->name[row->n_name] = (char *)(uintptr_t)name->name;
			torsh_key_index_fill(known, slot, name->start + 1, (uint32_t)row->n_name++);
			slot = torsh_key_index_find(known, name->start + 1);
		}
		row->address[row->n_address] = lookups->numbers[i];
		row->symbol[row->n_address] = slot->number;
		row->offset[row->n_address++] = lookups->exact[i] - name->start;
	}
}

static void append_module(struct recording_file *file, const struct program_tables *tables,
			  const struct lookups *lookups)
{
	Torsh__Symbols row = TORSH__SYMBOLS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	struct key_index known;

	torsh_key_index_create(&known);
	ROWS_SET(&row, process, tables->owner);
	ROWS_COLUMN(&memory, &row, name, lookups->n);
	ROWS_COLUMN(&memory, &row, address, lookups->n);
	ROWS_COLUMN(&memory, &row, symbol, lookups->n);
	ROWS_COLUMN(&memory, &row, offset, lookups->n);
	row.n_name = row.n_address = 0;
	put_names(&row, lookups, &known);
	row.n_symbol = row.n_offset = row.n_address;
	chunk.n_symbols = 1;
	chunk.symbols = &rows;
	if (row.n_address)
		torsh_recording_append(file, &chunk, RECORDING_LAST);
	torsh_key_index_destroy(&known);
	torsh_rows_free(&memory);
}

void torsh_rows_symbols(struct recording_file *file, const struct target *target,
			struct symbol_book *book)
{
	const struct program_tables *tables = target->state.tables;
	const struct code_table *code = &tables->code;
	struct rows_memory memory = {0};
	bool *is_wanted = torsh_rows_memory(&memory, code->n_addresses, sizeof(*is_wanted));
	uint32_t n = choose_addresses(target, is_wanted);
	struct grouped grouped = group_addresses(&memory, code, is_wanted, n);
	struct lookups lookups = {
		.numbers = torsh_rows_memory(&memory, n, sizeof(*lookups.numbers)),
		.call_addresses = torsh_rows_memory(&memory, n, sizeof(*lookups.call_addresses)),
		.exact = torsh_rows_memory(&memory, n, sizeof(*lookups.exact)),
		.names = torsh_rows_memory(&memory, n, sizeof(*lookups.names)),
	};

	for (uint32_t i = 0; i < code->n_modules; i++) {
		if (code->modules[i].path[0] != '/' || grouped.starts[i] == grouped.starts[i + 1])
			continue;
		collect_module(&lookups, code, &grouped, i);
		torsh_book_look_up(book, &code->modules[i], lookups.call_addresses, lookups.n,
				   lookups.names);
		append_module(file, tables, &lookups);
	}
	torsh_rows_free(&memory);
}
