/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/code_table.h"

#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_code_create(struct code_table *table, const struct channel_view *view)
{
	*table = (struct code_table){.view = view};
	table->numbers = torsh_memory_new(view->n_addresses, sizeof(*table->numbers));
	table->module_numbers = torsh_memory_new(view->n_modules, sizeof(*table->module_numbers));
	table->function_numbers = torsh_memory_new(view->n_codes, sizeof(*table->function_numbers));
	torsh_number_index_create(&table->address_index);
}

void torsh_code_destroy(struct code_table *table)
{
	for (uint32_t i = 0; i < table->n_modules; i++)
		free(table->modules[i].path);
	for (uint32_t i = 0; i < table->n_functions; i++) {
		free(table->functions[i].name);
		free(table->functions[i].file);
	}
	free(table->functions);
	free(table->function_numbers);
	free(table->modules);
	free(table->module_numbers);
	free(table->addresses);
	free(table->numbers);
	torsh_number_index_destroy(&table->address_index);
	*table = (struct code_table){0};
}

static bool is_same_module(const struct code_module *a, const struct code_module *b)
{
	return a->bias == b->bias && a->start == b->start && a->end == b->end &&
	       a->n_build_id == b->n_build_id && !memcmp(a->build_id, b->build_id, a->n_build_id) &&
	       !strcmp(a->path, b->path);
}

/* A linear search over a few hundred modules is faster than an index. */
static uint32_t add_module(struct code_table *table, const struct channel_module *module)
{
	size_t n_path;
	struct code_module row = {
		.bias = module->bias,
		.start = module->start,
		.end = module->end,
		.path = torsh_view_text(table->view, module->path, -1, &n_path),
		.n_build_id = module->n_build_id,
	};
	uint32_t number = 0;

	memcpy(row.build_id, module->build_id, row.n_build_id);
	while (number < table->n_modules && !is_same_module(&table->modules[number], &row))
		number++;
	if (number < table->n_modules) {
		free(row.path);
		return number;
	}
	table->modules =
		torsh_array_reserve(table->modules, number, &table->module_capacity, sizeof(row));
	table->modules[table->n_modules++] = row;
	return number;
}

static uint32_t module_number(struct code_table *table, uint32_t index)
{
	struct channel_module module;

	if (torsh_view_module(table->view, index, &module))
		return CHANNEL_NO_MODULE;
	if (!table->module_numbers[index])
		table->module_numbers[index] = add_module(table, &module) + 1;
	return table->module_numbers[index] - 1;
}

/* The agent gives a function one index, however often its code object is recreated. */
static uint32_t function_number(struct code_table *table, uint32_t index)
{
	struct channel_code code;
	size_t n;

	if (torsh_view_code(table->view, index, &code))
		return CHANNEL_NO_MODULE;
	if (!table->function_numbers[index]) {
		table->functions =
			torsh_array_reserve(table->functions, table->n_functions,
					    &table->function_capacity, sizeof(*table->functions));
		table->functions[table->n_functions++] = (struct code_function){
			.name = torsh_view_text(table->view, code.name, -1, &n),
			.file = torsh_view_text(table->view, code.file, -1, &n),
			.first_line = code.first_line,
		};
		table->function_numbers[index] = table->n_functions;
	}
	return table->function_numbers[index] - 1;
}

uint32_t torsh_code_label(struct code_table *table, uint32_t label)
{
	/* Maps CHANNEL_NO_MODULE + 1 back to none. */
	return label ? function_number(table, label - 1) + 1 : 0;
}

static uint32_t hash_of(const struct view_address *address)
{
	uint64_t h = address->ip * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 32;
	h = (h ^ ((uint64_t)address->module << 32 | address->flags)) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (uint32_t)((h ^ h >> 29) >> 32);
}

static bool is_same_address(const struct view_address *a, const struct view_address *b)
{
	return a->ip == b->ip && a->flags == b->flags && a->module == b->module;
}

static void grow_index(struct code_table *table)
{
	torsh_number_index_grow(&table->address_index);
	for (uint32_t i = 0; i < table->n_addresses; i++)
		torsh_number_index_add(&table->address_index, i + 1, hash_of(&table->addresses[i]));
}

static uint32_t address_number(struct code_table *table, const struct view_address *address)
{
	uint32_t hash = hash_of(address), number = table->n_addresses, found;
	uint32_t i = torsh_number_index_home(&table->address_index, hash);

	while ((found = torsh_number_index_next(&table->address_index, hash, &i))) {
		if (is_same_address(&table->addresses[found - 1], address))
			return found - 1;
	}
	if (torsh_number_index_is_full(&table->address_index))
		grow_index(table);
	table->addresses = torsh_array_reserve(table->addresses, number, &table->address_capacity,
					       sizeof(*address));
	table->addresses[table->n_addresses++] = *address;
	torsh_number_index_add(&table->address_index, number + 1, hash);
	return number;
}

uint32_t torsh_code_mark(struct code_table *table, uint32_t flag)
{
	return address_number(table,
			      &(struct view_address){.flags = flag, .module = CHANNEL_NO_MODULE});
}

int64_t torsh_code_add(struct code_table *table, uint32_t id)
{
	struct view_address address;
	uint32_t number;

	if (id >= table->view->n_addresses || torsh_view_address(table->view, id, &address))
		return -ENOENT;
	if (address.flags == ADDRESS_PYTHON)
		address.module = function_number(table, address.module);
	else
		address.module = module_number(table, address.module);
	number = address_number(table, &address);
	table->numbers[id] = number + 1;
	return number;
}
