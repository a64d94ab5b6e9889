/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of a process as a tree: a stack is its parent (the stack without its innermost frame)
 * and the number of its innermost address. Equal stacks have equal numbers. Stack 0 is the empty
 * one.
 *
 * The frames that a new stack adds to a known one get successive numbers: all but the first are
 * the child that follows its parent. Such a row is 4 bytes and is in no index; most rows are such.
 * The others are branches.
 *
 * Each event looks its stack up. The key of a branch is (parent, address), but its slot depends on
 * the addresses of the whole path, so the slots of several frames are prefetched at once, before
 * the parents' numbers are known.
 */
#ifndef TORSH_WRITER_FOLD_PROGRAM_STACK_TABLE_H
#define TORSH_WRITER_FOLD_PROGRAM_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/number_index.h"

#define STACK_DEPTH_MAX CHANNEL_STACK_MAX

/* A stack that does not follow its parent. */
struct stack_branch {
	uint32_t number, parent, address;
	uint32_t hash; /* of its path */
};

struct stack_table {
	/*
	 * by number: twice the address and 1 if the stack follows its parent, else twice the number
	 * of its branch; 0 after the last one
	 */
	uint32_t *rows;
	uint32_t n_rows; /* n_rows >= 1 */
	size_t capacity;
	struct stack_branch *branches; /* [0] is not used */
	uint32_t n_branches;
	size_t branch_capacity;
	struct number_index index; /* of the branches, by the hash of their paths */
};

/* Create a table with the empty stack. */
void torsh_stacks_create(struct stack_table *table);

/* Free the table. */
void torsh_stacks_destroy(struct stack_table *table);

/* Slow path of torsh_stacks_push. */
uint32_t torsh_stacks_add(struct stack_table *table, uint32_t parent, uint32_t address,
			  uint32_t hash);

static inline bool torsh_stacks_follows_parent(const struct stack_table *table, uint32_t stack)
{
	return table->rows[stack] & 1;
}

/* Returns the parent of a stack, which is not the empty one. */
static inline uint32_t torsh_stacks_parent(const struct stack_table *table, uint32_t stack)
{
	return torsh_stacks_follows_parent(table, stack)
		       ? stack - 1
		       : table->branches[table->rows[stack] / 2].parent;
}

/* Returns the innermost address of a stack, which is not the empty one. */
static inline uint32_t torsh_stacks_address(const struct stack_table *table, uint32_t stack)
{
	uint32_t row = table->rows[stack] / 2;

	return torsh_stacks_follows_parent(table, stack) ? row : table->branches[row].address;
}

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

/* Prefetch the child that follows the stack, if there is one. */
static inline void torsh_stacks_prefetch_child(const struct stack_table *table, uint32_t stack)
{
	__builtin_prefetch(&table->rows[stack + 1]);
}

/* Prefetch the slot of the path with that hash. */
static inline void torsh_stacks_prefetch(const struct stack_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->index.slots[torsh_number_index_home(&table->index, hash)]);
}

/* Prefetch the branch that the slot names, once that is in the cache. */
static inline void torsh_stacks_prefetch_row(const struct stack_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->branches[torsh_number_index_guess(&table->index, hash)]);
}

/* Prefetch the child that follows that branch's stack, once the branch is in the cache. */
static inline void torsh_stacks_prefetch_follower(const struct stack_table *table, uint32_t hash)
{
	uint32_t branch = torsh_number_index_guess(&table->index, hash);

	torsh_stacks_prefetch_child(table, table->branches[branch].number);
}

/* Returns the stack of a call from parent into address; hash is the new path's. */
static inline uint32_t torsh_stacks_push(struct stack_table *table, uint32_t parent,
					 uint32_t address, uint32_t hash)
{
	uint32_t i, number;

	if (table->rows[parent + 1] == (address << 1 | 1))
		return parent + 1;
	/* The latest stack has no child. */
	if (parent + 1 == table->n_rows)
		return torsh_stacks_add(table, parent, address, hash);
	i = torsh_number_index_home(&table->index, hash);
	while ((number = torsh_number_index_next(&table->index, hash, &i))) {
		const struct stack_branch *branch = &table->branches[number];

		if (branch->parent == parent && branch->address == address)
			return branch->number;
	}
	return torsh_stacks_add(table, parent, address, hash);
}

#endif
