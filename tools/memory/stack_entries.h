/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which stacks of a process are one entry for a reader: those whose keys (torsh_stack_key) are
 * equal. The keys are a trie: a node is found by its parent, which is the outer part of the key,
 * and an address. The keys of a stack extend those of its parent.
 */
#ifndef TORSH_MEMORY_STACK_ENTRIES_H
#define TORSH_MEMORY_STACK_ENTRIES_H

#include "tools/base/containers/number_index.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/frames/address_kinds.h"

struct key_node {
	uint32_t parent, address;
};

struct stack_entries {
	struct address_kinds kinds;
	struct key_node *nodes; /* by number, from 1 */
	size_t n_nodes, nodes_room;
	struct number_index by_key; /* of nodes */
	struct sparse_array keys; /* struct stack_keys by stack */
	uint32_t *path; /* stacks without keys yet, innermost first */
	size_t path_room;
};

/* Start; symbols may be NULL. The caller ends it. */
void torsh_stack_entries_start(struct stack_entries *entries,
			       const struct recorded_process *process, struct symbols *symbols);

/* Free what is known. */
void torsh_stack_entries_end(struct stack_entries *entries);

/*
 * Returns the entry of a stack, a number below that of the process's stacks. An arena belongs to
 * the user's lines that filled it, whatever path led to the allocator.
 */
uint32_t torsh_stack_entry(struct stack_entries *entries, uint32_t stack, bool is_arena);

#endif
