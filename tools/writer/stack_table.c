/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/stack_table.h"

#include <stdlib.h>

#include "tools/writer/memory.h"

void torsh_stacks_create(struct stack_table *table)
{
	*table = (struct stack_table){.n_rows = 1};
	table->rows = torsh_memory_grow(NULL, &table->capacity, 1, sizeof(*table->rows));
	torsh_key_index_create(&table->index);
}

void torsh_stacks_destroy(struct stack_table *table)
{
	free(table->rows);
	torsh_key_index_destroy(&table->index);
	*table = (struct stack_table){0};
}

uint32_t torsh_stacks_add(struct stack_table *table, struct key_slot *slot, uint64_t key)
{
	uint32_t number = table->n_rows++;

	table->rows = torsh_memory_grow(table->rows, &table->capacity, number, sizeof(*table->rows));
	table->rows[number] = (struct stack_row){.parent = (uint32_t)(key >> 32), .address = (uint32_t)key - 1};
	torsh_key_index_fill(&table->index, slot, key, number);
	return number;
}
