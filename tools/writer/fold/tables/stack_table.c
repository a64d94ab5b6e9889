/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/stack_table.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define FIRST_SLOTS 1024u

void torsh_stacks_create(struct stack_table *table)
{
	*table = (struct stack_table){.n_rows = 1, .mask = FIRST_SLOTS - 1};
	table->rows = torsh_array_reserve(NULL, 0, &table->capacity, sizeof(*table->rows));
	table->slots = torsh_memory_table(FIRST_SLOTS, sizeof(*table->slots));
}

void torsh_stacks_destroy(struct stack_table *table)
{
	free(table->rows);
	free(table->slots);
	*table = (struct stack_table){0};
}

static void fill_slot(struct stack_table *table, const struct stack_slot *filled)
{
	uint32_t i = filled->hash & table->mask;

	while (table->slots[i].key)
		i = (i + 1) & table->mask;
	table->slots[i] = *filled;
}

static void double_slots(struct stack_table *table)
{
	struct stack_slot *old = table->slots;
	uint32_t n_old = table->mask + 1;

	table->slots = torsh_memory_table((size_t)n_old * 2, sizeof(*table->slots));
	table->mask = n_old * 2 - 1;
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].key)
			fill_slot(table, &old[i]);
	}
	free(old);
}

uint32_t torsh_stacks_add(struct stack_table *table, uint64_t key, uint32_t hash)
{
	uint32_t number = table->n_rows++;

	table->rows =
		torsh_array_reserve(table->rows, number, &table->capacity, sizeof(*table->rows));
	table->rows[number] =
		(struct stack_row){.parent = (uint32_t)(key >> 32), .address = (uint32_t)key - 1};
	if (table->n_rows > table->mask / 4 * 3)
		double_slots(table);
	fill_slot(table, &(struct stack_slot){.key = key, .number = number, .hash = hash});
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
