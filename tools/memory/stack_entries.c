/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/stack_entries.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/frames/stack_key.h"

/* The keys of a stack, as nodes of the trie; 0: no frames. */
struct stack_keys {
	uint32_t own : 31; /* of the user's own frames */
	uint32_t is_known : 1;
	uint32_t all; /* of all frames of the key */
};

void torsh_stack_entries_start(struct stack_entries *entries,
			       const struct recorded_process *process, struct symbols *symbols)
{
	*entries = (struct stack_entries){0};
	torsh_sparse_array_create(&entries->keys, sizeof(struct stack_keys));
	torsh_address_kinds_start(&entries->kinds, process, symbols);
	torsh_number_index_create(&entries->by_key);
}

void torsh_stack_entries_end(struct stack_entries *entries)
{
	torsh_address_kinds_end(&entries->kinds);
	torsh_number_index_destroy(&entries->by_key);
	torsh_sparse_array_destroy(&entries->keys);
	free(entries->nodes);
	free(entries->path);
}

static uint32_t find_node(const struct stack_entries *entries, uint32_t parent, uint32_t address)
{
	uint32_t hash = torsh_number_index_hash(parent, address), number,
		 slot = torsh_number_index_home(&entries->by_key, hash);

	while ((number = torsh_number_index_next(&entries->by_key, hash, &slot)))
		if (entries->nodes[number].parent == parent &&
		    entries->nodes[number].address == address)
			break;
	return number;
}

static void grow_index(struct stack_entries *entries)
{
	torsh_number_index_grow(&entries->by_key);
	for (uint32_t i = 1; i <= entries->n_nodes; i++)
		torsh_number_index_add(&entries->by_key, i,
				       torsh_number_index_hash(entries->nodes[i].parent,
							       entries->nodes[i].address));
}

static uint32_t node_below(struct stack_entries *entries, uint32_t parent, uint32_t address)
{
	uint32_t number = find_node(entries, parent, address);

	if (number)
		return number;
	if (torsh_number_index_is_full(&entries->by_key))
		grow_index(entries);
	number = (uint32_t)++entries->n_nodes;
	entries->nodes = torsh_array_reserve(entries->nodes, number, &entries->nodes_room,
					     sizeof(*entries->nodes));
	entries->nodes[number] = (struct key_node){.parent = parent, .address = address};
	torsh_number_index_add(&entries->by_key, number, torsh_number_index_hash(parent, address));
	return number;
}

/* Returns the keys of a stack with this innermost address, from its parent's. */
static struct stack_keys keys_below(struct stack_entries *entries, struct stack_keys parent,
				    uint32_t address)
{
	enum frame_kind kind = torsh_address_kind(&entries->kinds, address);
	bool has_own = parent.own || kind == FRAME_OWN;

	/* Outside of an own frame only own frames are part of the key: of a recursion one. */
	if (kind == FRAME_OWN) {
		if (!parent.own || entries->nodes[parent.own].address != address)
			parent.own = node_below(entries, parent.own, address);
		parent.all = parent.own;
	} else if (torsh_stack_key_has(kind, false, has_own)) {
		parent.all = node_below(entries, parent.all, address);
	}
	return parent;
}

static struct stack_keys keys_of(struct stack_entries *entries, uint32_t stack)
{
	const struct recorded_process *process = entries->kinds.process;
	struct stack_keys keys = {.is_known = true}, *known;
	size_t n = 0;

	for (; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		known = torsh_sparse_array_at(&entries->keys, stack);
		if (known->is_known) {
			keys = *known;
			break;
		}
		entries->path = torsh_array_reserve(entries->path, n, &entries->path_room,
						    sizeof(*entries->path));
		entries->path[n++] = stack;
	}
	while (n-- > 0) {
		stack = entries->path[n];
		keys = keys_below(entries, keys, process->tables->stacks[stack].address);
		known = torsh_sparse_array_at(&entries->keys, stack);
		*known = keys;
	}
	return keys;
}

uint32_t torsh_stack_entry(struct stack_entries *entries, uint32_t stack, bool is_arena)
{
	struct stack_keys keys = keys_of(entries, stack);

	return is_arena ? keys.own : keys.all;
}
