/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of a process as a tree: a stack is its parent (the stack without its innermost frame)
 * and the number of its innermost address. Equal stacks have equal numbers. Stack 0 is the empty
 * one.
 *
 * Each event looks its stack up. The key is (parent, address), but the slot depends on the
 * addresses of the whole path, so the slots of several frames are prefetched at once, before the
 * parents' numbers are known.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_STACK_TABLE_H
#define TORSH_WRITER_FOLD_TABLES_STACK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/channel.h"
#include "tools/writer/fold/tables/number_index.h"

#define STACK_DEPTH_MAX CHANNEL_STACK_MAX

struct stack_row {
	uint32_t parent;
	uint32_t address;
};

struct stack_table {
	struct stack_row *rows; /* by number */
	uint32_t n_rows; /* n_rows >= 1 */
	size_t capacity;
	struct number_index index; /* of the rows but the empty stack's, by the hash of the path */
};

/* A stack and the hash of its path. */
struct hashed_stack {
	uint32_t stack;
	uint32_t hash;
};

/* Create a table with the empty stack. */
void torsh_stacks_create(struct stack_table *table);

/* Free the table. */
void torsh_stacks_destroy(struct stack_table *table);

/* Slow path of torsh_stacks_push. */
uint32_t torsh_stacks_add(struct stack_table *table, uint32_t parent, uint32_t address,
			  uint32_t hash);

/* Returns the hash of a path from the hash of its parent's path. */
static inline uint32_t torsh_stacks_hash(uint32_t hash, uint32_t address)
{
	uint64_t h = ((uint64_t)hash << 32 | (address + 1)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((h ^ h >> 29) * UINT64_C(0xc2b2ae3d27d4eb4f) >> 32);
}

/*
 * Returns the stack of a call from parent into address, for callers without the hash of its path.
 */
uint32_t torsh_stacks_below(struct stack_table *table, uint32_t parent, uint32_t address);

/* Prefetch the slot of the path with that hash. */
static inline void torsh_stacks_prefetch(const struct stack_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->index.slots[torsh_number_index_home(&table->index, hash)]);
}

/* Prefetch the row that the slot names, once that is in the cache. */
static inline void torsh_stacks_prefetch_row(const struct stack_table *table, uint32_t hash)
{
	uint32_t i = torsh_number_index_home(&table->index, hash);

	__builtin_prefetch(&table->rows[torsh_number_index_next(&table->index, hash, &i)]);
}

/* Returns the stack of a call from parent into address; hash is the new path's. */
static inline uint32_t torsh_stacks_push(struct stack_table *table, uint32_t parent,
					 uint32_t address, uint32_t hash)
{
	uint32_t i = torsh_number_index_home(&table->index, hash), number;

	while ((number = torsh_number_index_next(&table->index, hash, &i))) {
		const struct stack_row *row = &table->rows[number];

		if (row->parent == parent && row->address == address)
			return number;
	}
	return torsh_stacks_add(table, parent, address, hash);
}

#endif
