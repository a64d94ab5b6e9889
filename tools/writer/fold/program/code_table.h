/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The addresses, modules and functions that stacks refer to. Processes of one program share a
 * table: an address of a file that they loaded at different places is one row, with the place of
 * the first of them; process_code.h has where the others loaded it.
 */
#ifndef TORSH_WRITER_FOLD_PROGRAM_CODE_TABLE_H
#define TORSH_WRITER_FOLD_PROGRAM_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/base/containers/number_index.h"
#include "tools/writer/input/channel_view.h"

/* Readers refuse larger numbers. */
#define CODE_ADDRESSES_MAX ((1u << 23) - 1)
#define CODE_FUNCTIONS_MAX (1u << 22)
#define CODE_MODULES_MAX (1u << 20)

struct code_module {
	uint64_t bias, start, end;
	char *path;
	uint32_t process; /* the only one that it is known of; 0: any may have loaded this file */
	uint32_t n_build_id;
	uint8_t build_id[CHANNEL_BUILD_ID_MAX];
};

struct code_address {
	uint64_t ip; /* with ADDRESS_PYTHON: the line */
	uint32_t module; /* number, or CHANNEL_NO_MODULE; with ADDRESS_PYTHON: of a function */
	uint32_t flags : 8; /* enum channel_address_flag */
	uint32_t process : 24; /* that of an ip without a module; else 0 */
};

/* A function of an interpreted language. */
struct code_function {
	char *name, *file;
	uint32_t first_line;
};

struct code_table {
	struct code_address *addresses;
	uint32_t n_addresses;
	size_t address_capacity;
	struct number_index address_index; /* of numbers + 1 */
	struct code_module *modules;
	uint32_t n_modules;
	size_t module_capacity;
	struct code_function *functions;
	uint32_t n_functions;
	size_t function_capacity;
	struct number_index function_index; /* of numbers + 1 */
};

/* Create an empty table. */
void torsh_code_create(struct code_table *table);

/* Nothing is looked up any more: free what only that needs. */
void torsh_code_end(struct code_table *table);

/* Free the table. */
void torsh_code_destroy(struct code_table *table);

/*
 * Returns the number of an address, which is added if it is new; of ADDRESS_CUT_TABLE_FULL if there
 * is no room for it.
 */
uint32_t torsh_code_address(struct code_table *table, const struct code_address *address);

/* Returns the number of the pseudo-address with that flag, for stacks that the writer left out. */
uint32_t torsh_code_mark(struct code_table *table, uint32_t flag);

/*
 * Returns the number of a function, which is added if it is new and whose texts the table takes
 * over, or CHANNEL_NO_MODULE if there is no room for it.
 */
uint32_t torsh_code_function(struct code_table *table, const struct code_function *function);

/* Returns true if b is the same file as a, mapped at any address. */
bool torsh_code_is_same_file(const struct code_module *a, const struct code_module *b);

/*
 * Add a module, whose path the table takes over. Returns its number, or CHANNEL_NO_MODULE if there
 * is no room for it.
 */
uint32_t torsh_code_add_module(struct code_table *table, const struct code_module *module);

#endif
