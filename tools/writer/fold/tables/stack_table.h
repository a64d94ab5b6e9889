/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of a process as a tree: a stack is its parent (what is left without the innermost
 * frame) and the number of its innermost address. Equal stacks have equal numbers. Stack 0 is the
 * empty one.
 *
 * Not the key index of tools/base, as each event looks its stack up: a stack is found by (parent,
 * address), but its slot follows from the addresses of the whole path, so that the slots of several
 * frames are fetched at once, before the numbers of the parents are known.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_STACK_TABLE_H
#define TORSH_WRITER_FOLD_TABLES_STACK_TABLE_H

#include <stdint.h>

#include "agent/wire/channel.h"

#define STACK_DEPTH_MAX CHANNEL_STACK_MAX

struct stack_row {
	uint32_t parent;
	uint32_t address;
	uint32_t heap_site, map_site; /* where this stack's totals are; 0: none yet */
};

/* key: parent << 32 | address + 1; 0: an empty slot. */
struct stack_slot {
	uint64_t key;
	uint32_t number;
	uint32_t hash;
};

struct stack_table {
	struct stack_row *rows; /* by number */
	uint32_t n_rows, capacity; /* n_rows >= 1 */
	struct stack_slot *slots; /* mask + 1, a quarter of them empty at least */
	uint32_t mask;
};

/* A stack with the hash of its path. */
struct hashed_stack {
	uint32_t stack;
	uint32_t hash;
};

/* Create a table with the empty stack. */
void torsh_stacks_create(struct stack_table *table);

/* Free the table. */
void torsh_stacks_destroy(struct stack_table *table);

/* Slow half of torsh_stacks_push. */
uint32_t torsh_stacks_add(struct stack_table *table, uint64_t key, uint32_t hash);

/* The hash of a path whose parent's is `hash`. */
static inline uint32_t torsh_stacks_hash(uint32_t hash, uint32_t address)
{
	uint64_t h = ((uint64_t)hash << 32 | (address + 1)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((h ^ h >> 29) * UINT64_C(0xc2b2ae3d27d4eb4f) >> 32);
}

/* The stack that parent becomes by a call into address, where the hash of its path isn't known. */
uint32_t torsh_stacks_below(struct stack_table *table, uint32_t parent, uint32_t address);

/* Fetch the slot of a path with that hash into the cache. */
static inline void torsh_stacks_prefetch(const struct stack_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->slots[hash & table->mask]);
}

/* The stack that parent becomes by a call into address; hash is that of the new path. */
static inline uint32_t torsh_stacks_push(struct stack_table *table, uint32_t parent,
					 uint32_t address, uint32_t hash)
{
	uint64_t key = (uint64_t)parent << 32 | (address + 1);
	uint32_t i = hash & table->mask;

	while (table->slots[i].key != key) {
		if (__builtin_expect(!table->slots[i].key, 0))
			return torsh_stacks_add(table, key, hash);
		i = (i + 1) & table->mask;
	}
	return table->slots[i].number;
}

#endif
