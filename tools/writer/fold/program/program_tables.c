/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/program/program_tables.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* Tables with more are not joined: most of it may be of processes that have ended. */
#define JOINED_STACKS (1u << 24)
#define JOINED_ADDRESSES (CODE_ADDRESSES_MAX / 4)
#define JOINED_FUNCTIONS (CODE_FUNCTIONS_MAX / 4)
#define JOINED_MODULES (1u << 12)

struct program_tables *torsh_program_tables_create(uint32_t owner)
{
	struct program_tables *tables = torsh_memory_new(1, sizeof(*tables));

	tables->owner = owner;
	torsh_code_create(&tables->code);
	torsh_stacks_create(&tables->stacks);
	return tables;
}

static bool can_be_joined(const struct program_tables *tables, const char *program)
{
	return !strcmp(tables->program, program) && tables->stacks.n_rows <= JOINED_STACKS &&
	       tables->code.n_addresses <= JOINED_ADDRESSES &&
	       tables->code.n_functions <= JOINED_FUNCTIONS &&
	       tables->code.n_modules <= JOINED_MODULES;
}

struct program_tables *torsh_program_tables_find(struct program_tables_set *set,
						 const char *program, uint32_t process)
{
	struct program_tables *tables;

	for (uint32_t i = 0; i < set->n; i++) {
		if (can_be_joined(set->items[i], program))
			return set->items[i];
	}
	tables = torsh_program_tables_create(process);
	tables->set = set;
	tables->program = torsh_memory_text(program);
	set->items = torsh_array_reserve(set->items, set->n, &set->capacity, sizeof(*set->items));
	set->items[set->n++] = tables;
	return tables;
}

void torsh_program_tables_join(struct program_tables *tables)
{
	tables->n_users++;
}

static void remove_from(struct program_tables_set *set, const struct program_tables *tables)
{
	uint32_t i = 0;

	while (set->items[i] != tables)
		i++;
	set->items[i] = set->items[--set->n];
}

void torsh_program_tables_leave(struct program_tables *tables)
{
	if (--tables->n_users)
		return;
	if (tables->set)
		remove_from(tables->set, tables);
	torsh_code_destroy(&tables->code);
	torsh_stacks_destroy(&tables->stacks);
	torsh_attributed_frames_destroy(&tables->attributed);
	free(tables->is_named);
	free(tables->program);
	free(tables);
}

void torsh_program_tables_set_destroy(struct program_tables_set *set)
{
	free(set->items);
	*set = (struct program_tables_set){0};
}
