/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of a process as a tree: a stack is its parent (what is left without the innermost frame) and the number
 * of its innermost address. Equal stacks have equal numbers. Stack 0 is the empty one.
 */
#ifndef TORSH_WRITER_STACK_TABLE_H
#define TORSH_WRITER_STACK_TABLE_H

#include "tools/writer/key_index.h"

#define STACK_DEPTH_MAX 1100u

struct stack_row {
	uint32_t parent;
	uint32_t address;
	uint32_t heap_site, map_site; /* where this stack's totals are; 0: none yet */
};

struct stack_table {
	struct stack_row *rows; /* by number */
	uint32_t n_rows, capacity; /* n_rows >= 1 */
	struct key_index index;
};

void torsh_stacks_create(struct stack_table *table);
void torsh_stacks_destroy(struct stack_table *table);

/* Slow half of torsh_stacks_push. */
uint32_t torsh_stacks_add(struct stack_table *table, struct key_slot *slot, uint64_t key);

/* The stack that parent becomes by a call into address. */
static inline uint32_t torsh_stacks_push(struct stack_table *table, uint32_t parent, uint32_t address)
{
	uint64_t key = (uint64_t)parent << 32 | (address + 1);
	struct key_slot *slot = torsh_key_index_find(&table->index, key);

	if (__builtin_expect(slot->key != 0, 1))
		return slot->number;
	return torsh_stacks_add(table, slot, key);
}

#endif
