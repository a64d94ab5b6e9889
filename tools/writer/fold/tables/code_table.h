/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The addresses, modules and functions that a process's stacks refer to, copied from its channel at
 * the first reference and renumbered: equal channel entries (after a dlclose all are sent again)
 * share a number.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_CODE_TABLE_H
#define TORSH_WRITER_FOLD_TABLES_CODE_TABLE_H

#include <stddef.h>

#include "tools/writer/fold/tables/number_index.h"
#include "tools/writer/input/channel_view.h"

struct code_module {
	uint64_t bias, start, end;
	char *path;
	uint32_t n_build_id;
	uint8_t build_id[CHANNEL_BUILD_ID_MAX];
};

/* A function of an interpreted language. */
struct code_function {
	char *name, *file;
	uint32_t first_line;
};

struct code_table {
	const struct channel_view *view;
	uint32_t *numbers; /* by the channel's id: number + 1; 0: not referenced yet */
	/* by number; module is a number too: of a function with ADDRESS_PYTHON */
	struct view_address *addresses;
	uint32_t n_addresses;
	size_t address_capacity;
	struct number_index address_index; /* of numbers + 1 */
	uint32_t *module_numbers; /* by the channel's index: number + 1 */
	struct code_module *modules;
	uint32_t n_modules;
	size_t module_capacity;
	uint32_t *function_numbers; /* by the channel's index: number + 1 */
	struct code_function *functions;
	uint32_t n_functions;
	size_t function_capacity;
};

/* Create an empty table; the view must outlive it. */
void torsh_code_create(struct code_table *table, const struct channel_view *view);

/* Free the table. */
void torsh_code_destroy(struct code_table *table);

/*
 * Returns the number + 1 of the function with the channel's label; 0: no label, or the channel has
 * no such label.
 */
uint32_t torsh_code_label(struct code_table *table, uint32_t label);

/* Returns the number of the pseudo-address with that flag, for stacks that the writer left out. */
uint32_t torsh_code_mark(struct code_table *table, uint32_t flag);

/* Slow path of torsh_code_number. */
int64_t torsh_code_add(struct code_table *table, uint32_t id);

/* Returns the number of the channel's address id, or -ENOENT if the channel has no such address. */
static inline int64_t torsh_code_number(struct code_table *table, uint32_t id)
{
	if (__builtin_expect(id < table->view->n_addresses && table->numbers[id], 1))
		return table->numbers[id] - 1;
	return torsh_code_add(table, id);
}

#endif
