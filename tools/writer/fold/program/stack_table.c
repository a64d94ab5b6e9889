/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/program/stack_table.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define PREFETCHED 16u /* branches: the slots of so many are loaded at once */

/* Make room for a further row; the one after the last is 0. */
static void reserve_row(struct stack_table *table)
{
	table->rows = torsh_array_reserve(table->rows, table->n_rows, &table->capacity,
					  sizeof(*table->rows));
}

void torsh_stacks_create(struct stack_table *table)
{
	*table = (struct stack_table){.n_branches = 1};
	reserve_row(table);
	table->n_rows = 1;
	reserve_row(table);
	table->branches =
		torsh_array_reserve(NULL, 0, &table->branch_capacity, sizeof(*table->branches));
	torsh_number_index_create(&table->index);
}

void torsh_stacks_destroy(struct stack_table *table)
{
	free(table->rows);
	free(table->branches);
	torsh_number_index_destroy(&table->index);
	*table = (struct stack_table){0};
}

static void grow_index(struct stack_table *table)
{
	torsh_number_index_grow(&table->index);
	for (uint32_t i = 1; i < table->n_branches; i++) {
		if (i + PREFETCHED < table->n_branches)
			torsh_stacks_prefetch(table, table->branches[i + PREFETCHED].hash);
		torsh_number_index_add(&table->index, i, table->branches[i].hash);
	}
}

/* Returns its number. */
static uint32_t add_branch(struct stack_table *table, const struct stack_branch *branch)
{
	uint32_t number = table->n_branches;

	if (torsh_number_index_is_full(&table->index))
		grow_index(table);
	table->branches = torsh_array_reserve(table->branches, number, &table->branch_capacity,
					      sizeof(*table->branches));
	table->branches[table->n_branches++] = *branch;
	torsh_number_index_add(&table->index, number, branch->hash);
	return number;
}

uint32_t torsh_stacks_add(struct stack_table *table, uint32_t parent, uint32_t address,
			  uint32_t hash)
{
	uint32_t number = table->n_rows++;
	struct stack_branch branch = {
		.number = number, .parent = parent, .address = address, .hash = hash};
	uint32_t row = parent + 1 == number ? address << 1 | 1 : add_branch(table, &branch) << 1;

	reserve_row(table);
	table->rows[number] = row;
	return number;
}

static uint32_t hash_path(const struct stack_table *table, uint32_t stack)
{
	uint32_t addresses[STACK_DEPTH_MAX], n = 0, hash = 0;

	for (; stack && n < STACK_DEPTH_MAX; stack = torsh_stacks_parent(table, stack))
		addresses[n++] = torsh_stacks_address(table, stack);
	while (n)
		hash = torsh_stacks_hash(hash, addresses[--n]);
	return hash;
}

uint32_t torsh_stacks_below(struct stack_table *table, uint32_t parent, uint32_t address)
{
	return torsh_stacks_push(table, parent, address,
				 torsh_stacks_hash(hash_path(table, parent), address));
}
