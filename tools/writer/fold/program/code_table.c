/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/program/code_table.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_code_create(struct code_table *table)
{
	*table = (struct code_table){0};
	torsh_number_index_create(&table->address_index);
	torsh_number_index_create(&table->function_index);
}

void torsh_code_end(struct code_table *table)
{
	torsh_number_index_destroy(&table->address_index);
	torsh_number_index_destroy(&table->function_index);
}

void torsh_code_destroy(struct code_table *table)
{
	torsh_code_end(table);
	for (uint32_t i = 0; i < table->n_modules; i++)
		free(table->modules[i].path);
	for (uint32_t i = 0; i < table->n_functions; i++) {
		free(table->functions[i].name);
		free(table->functions[i].file);
	}
	free(table->functions);
	free(table->modules);
	free(table->addresses);
	*table = (struct code_table){0};
}

/* ---- addresses ------------------------------------------------------------------------------- */

static uint32_t hash_of(const struct code_address *address)
{
	uint64_t h =
		(address->ip ^ (uint64_t)address->process << 40) * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 32;
	h = (h ^ ((uint64_t)address->module << 32 | address->flags)) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (uint32_t)((h ^ h >> 29) >> 32);
}

static bool is_same_address(const struct code_address *a, const struct code_address *b)
{
	return a->ip == b->ip && a->flags == b->flags && a->module == b->module &&
	       a->process == b->process;
}

static void grow_address_index(struct code_table *table)
{
	torsh_number_index_grow(&table->address_index);
	for (uint32_t i = 0; i < table->n_addresses; i++)
		torsh_number_index_add(&table->address_index, i + 1, hash_of(&table->addresses[i]));
}

/* Returns its number + 1; 0: it is not there. */
static uint32_t find_address(const struct code_table *table, const struct code_address *address,
			     uint32_t hash)
{
	uint32_t i = torsh_number_index_home(&table->address_index, hash), found;

	while ((found = torsh_number_index_next(&table->address_index, hash, &i))) {
		if (is_same_address(&table->addresses[found - 1], address))
			return found;
	}
	return 0;
}

uint32_t torsh_code_address(struct code_table *table, const struct code_address *address)
{
	static const struct code_address full = {.flags = ADDRESS_CUT_TABLE_FULL,
						 .module = CHANNEL_NO_MODULE};
	uint32_t number = table->n_addresses, hash = hash_of(address),
		 found = find_address(table, address, hash);

	if (found)
		return found - 1;
	/* The last row is that of all that have no room. */
	if (number >= CODE_ADDRESSES_MAX - 1 && !is_same_address(address, &full))
		return torsh_code_address(table, &full);
	if (torsh_number_index_is_full(&table->address_index))
		grow_address_index(table);
	table->addresses = torsh_array_reserve(table->addresses, number, &table->address_capacity,
					       sizeof(*address));
	table->addresses[table->n_addresses++] = *address;
	torsh_number_index_add(&table->address_index, number + 1, hash);
	return number;
}

uint32_t torsh_code_mark(struct code_table *table, uint32_t flag)
{
	return torsh_code_address(
		table, &(struct code_address){.flags = (uint8_t)flag, .module = CHANNEL_NO_MODULE});
}

/* ---- functions ------------------------------------------------------------------------------- */

static uint32_t hash_function(const struct code_function *function)
{
	XXH64_hash_t hash = XXH64(function->name, strlen(function->name), function->first_line);

	return (uint32_t)XXH64(function->file, strlen(function->file), hash);
}

static bool is_same_function(const struct code_function *a, const struct code_function *b)
{
	return a->first_line == b->first_line && !strcmp(a->name, b->name) &&
	       !strcmp(a->file, b->file);
}

static void grow_function_index(struct code_table *table)
{
	torsh_number_index_grow(&table->function_index);
	for (uint32_t i = 0; i < table->n_functions; i++)
		torsh_number_index_add(&table->function_index, i + 1,
				       hash_function(&table->functions[i]));
}

/* Returns its number + 1; 0: it is not there. */
static uint32_t find_function(const struct code_table *table, const struct code_function *function,
			      uint32_t hash)
{
	uint32_t i = torsh_number_index_home(&table->function_index, hash), found;

	while ((found = torsh_number_index_next(&table->function_index, hash, &i))) {
		if (is_same_function(&table->functions[found - 1], function))
			return found;
	}
	return 0;
}

uint32_t torsh_code_function(struct code_table *table, const struct code_function *function)
{
	uint32_t hash = hash_function(function), found = find_function(table, function, hash);

	if (found || table->n_functions == CODE_FUNCTIONS_MAX) {
		free(function->name);
		free(function->file);
		return found ? found - 1 : CHANNEL_NO_MODULE;
	}
	if (torsh_number_index_is_full(&table->function_index))
		grow_function_index(table);
	table->functions = torsh_array_reserve(table->functions, table->n_functions,
					       &table->function_capacity, sizeof(*function));
	table->functions[table->n_functions++] = *function;
	torsh_number_index_add(&table->function_index, table->n_functions, hash);
	return table->n_functions - 1;
}

/* ---- modules --------------------------------------------------------------------------------- */

bool torsh_code_is_same_file(const struct code_module *a, const struct code_module *b)
{
	return a->process == b->process && a->n_build_id == b->n_build_id &&
	       a->end - a->start == b->end - b->start && a->start - a->bias == b->start - b->bias &&
	       !memcmp(a->build_id, b->build_id, a->n_build_id) && !strcmp(a->path, b->path);
}

uint32_t torsh_code_add_module(struct code_table *table, const struct code_module *module)
{
	if (table->n_modules == CODE_MODULES_MAX) {
		free(module->path);
		return CHANNEL_NO_MODULE;
	}
	table->modules = torsh_array_reserve(table->modules, table->n_modules,
					     &table->module_capacity, sizeof(*module));
	table->modules[table->n_modules] = *module;
	return table->n_modules++;
}
