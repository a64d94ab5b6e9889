/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/stack_table.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_stacks_create(struct stack_table *table)
{
	*table = (struct stack_table){.n_rows = 1};
	table->rows = torsh_array_reserve(NULL, 0, &table->capacity, sizeof(*table->rows));
	torsh_number_index_create(&table->index);
}

void torsh_stacks_destroy(struct stack_table *table)
{
	free(table->rows);
	torsh_number_index_destroy(&table->index);
	*table = (struct stack_table){0};
}

/* A parent comes before its children, so one pass computes the hashes of all paths. */
static void grow_index(struct stack_table *table)
{
	uint32_t n = table->n_rows, *hashes;

	torsh_number_index_grow(&table->index);
	hashes = torsh_memory_table(n, sizeof(*hashes));
	for (uint32_t i = 1; i < n; i++)
		hashes[i] =
			torsh_stacks_hash(hashes[table->rows[i].parent], table->rows[i].address);
	torsh_number_index_add_all(&table->index, hashes, n);
	free(hashes);
}

uint32_t torsh_stacks_add(struct stack_table *table, uint32_t parent, uint32_t address,
			  uint32_t hash)
{
	uint32_t number = table->n_rows;

	if (torsh_number_index_is_full(&table->index))
		grow_index(table);
	table->rows =
		torsh_array_reserve(table->rows, number, &table->capacity, sizeof(*table->rows));
	table->n_rows++;
	table->rows[number] = (struct stack_row){.parent = parent, .address = address};
	torsh_number_index_add(&table->index, number, hash);
	return number;
}

static uint32_t hash_path(const struct stack_table *table, uint32_t stack)
{
	uint32_t addresses[STACK_DEPTH_MAX], n = 0, hash = 0;

	for (; stack && n < STACK_DEPTH_MAX; stack = table->rows[stack].parent)
		addresses[n++] = table->rows[stack].address;
	while (n)
		hash = torsh_stacks_hash(hash, addresses[--n]);
	return hash;
}

uint32_t torsh_stacks_below(struct stack_table *table, uint32_t parent, uint32_t address)
{
	return torsh_stacks_push(table, parent, address,
				 torsh_stacks_hash(hash_path(table, parent), address));
}
