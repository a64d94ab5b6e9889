/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Merges allocation sites that are one entry for a reader: torsh_sites_merge_alike. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/number_index.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/frames/address_kinds.h"
#include "tools/frames/stack_key.h"
#include "tools/memory/allocation_sites.h"

/* The keys of a stack, as nodes of the trie; 0: no frames. */
struct stack_keys {
	uint32_t own; /* of the user's own frames */
	uint32_t all; /* of all frames of the key */
	bool is_known;
};

struct key_node {
	uint32_t parent, address;
};

/*
 * The keys of a process's stacks as a trie: a node is found by its parent, which is the outer part
 * of the key, and an address. The keys of a stack extend those of its parent.
 */
struct key_trie {
	struct address_kinds kinds;
	struct key_node *nodes; /* by number, from 1 */
	size_t n_nodes, nodes_room;
	struct number_index by_key; /* of nodes */
	struct sparse_array keys; /* struct stack_keys by stack */
	uint32_t *path; /* stacks without keys yet, innermost first */
	size_t path_room;
};

static uint32_t find_node(const struct key_trie *trie, uint32_t parent, uint32_t address)
{
	uint32_t hash = torsh_number_index_hash(parent, address), number,
		 slot = torsh_number_index_home(&trie->by_key, hash);

	while ((number = torsh_number_index_next(&trie->by_key, hash, &slot)))
		if (trie->nodes[number].parent == parent && trie->nodes[number].address == address)
			break;
	return number;
}

static void grow_index(struct key_trie *trie)
{
	torsh_number_index_grow(&trie->by_key);
	for (uint32_t i = 1; i <= trie->n_nodes; i++)
		torsh_number_index_add(
			&trie->by_key, i,
			torsh_number_index_hash(trie->nodes[i].parent, trie->nodes[i].address));
}

static uint32_t node_below(struct key_trie *trie, uint32_t parent, uint32_t address)
{
	uint32_t number = find_node(trie, parent, address);

	if (number)
		return number;
	if (torsh_number_index_is_full(&trie->by_key))
		grow_index(trie);
	number = (uint32_t)++trie->n_nodes;
	trie->nodes =
		torsh_array_reserve(trie->nodes, number, &trie->nodes_room, sizeof(*trie->nodes));
	trie->nodes[number] = (struct key_node){.parent = parent, .address = address};
	torsh_number_index_add(&trie->by_key, number, torsh_number_index_hash(parent, address));
	return number;
}

/* Returns the keys of a stack with this innermost address, from its parent's. */
static struct stack_keys keys_below(struct key_trie *trie, struct stack_keys parent,
				    uint32_t address)
{
	enum frame_kind kind = torsh_address_kind(&trie->kinds, address);
	bool has_own = parent.own || kind == FRAME_OWN;

	/* Outside of an own frame only own frames are part of the key. */
	if (kind == FRAME_OWN) {
		parent.own = node_below(trie, parent.own, address);
		parent.all = parent.own;
	} else if (torsh_stack_key_has(kind, false, has_own)) {
		parent.all = node_below(trie, parent.all, address);
	}
	return parent;
}

static struct stack_keys keys_of(struct key_trie *trie, uint32_t stack)
{
	const struct recorded_process *process = trie->kinds.process;
	struct stack_keys keys = {.is_known = true}, *known;
	size_t n = 0;

	for (; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		known = torsh_sparse_array_at(&trie->keys, stack);
		if (known->is_known) {
			keys = *known;
			break;
		}
		trie->path =
			torsh_array_reserve(trie->path, n, &trie->path_room, sizeof(*trie->path));
		trie->path[n++] = stack;
	}
	while (n-- > 0) {
		stack = trie->path[n];
		keys = keys_below(trie, keys, process->tables->stacks[stack].address);
		known = torsh_sparse_array_at(&trie->keys, stack);
		*known = keys;
	}
	return keys;
}

/* An arena belongs to the user's lines that filled it, whatever path led to the allocator. */
static uint32_t entry_of(struct key_trie *trie, uint32_t stack, bool is_arena)
{
	struct stack_keys keys = keys_of(trie, stack);

	return is_arena ? keys.own : keys.all;
}

static int compare_entries(const struct allocation_site *a, const struct allocation_site *b,
			   size_t depth)
{
	int rc = torsh_sites_compare_kinds(a, b);

	(void)depth;
	if (rc)
		return rc;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Set the entries of the n sites of one process. */
static void set_entries(struct allocation_site *sites, size_t n, struct symbols *symbols)
{
	const struct recorded_process *process = sites->process;
	struct key_trie trie = {0};

	torsh_sparse_array_create(&trie.keys, sizeof(struct stack_keys));
	torsh_address_kinds_start(&trie.kinds, process, symbols);
	torsh_number_index_create(&trie.by_key);
	for (size_t i = 0; i < n; i++)
		sites[i].entry = entry_of(&trie, sites[i].stack, sites[i].is_arena);
	torsh_address_kinds_end(&trie.kinds);
	torsh_number_index_destroy(&trie.by_key);
	free(trie.nodes);
	torsh_sparse_array_destroy(&trie.keys);
	free(trie.path);
}

void torsh_sites_merge_alike(struct allocation_sites *sites, struct symbols *symbols)
{
	if (sites->is_unmerged || sites->depth || sites->view != STACK_VIEW_MERGED)
		return;
	/* Sites of a process are adjacent: they were collected in that order. */
	for (size_t i = 0, n; i < sites->n; i += n) {
		struct allocation_site *first = &sites->items[i];

		for (n = 1; i + n < sites->n && first[n].process == first->process;)
			n++;
		set_entries(first, n, symbols);
	}
	torsh_sites_merge_equal(sites, compare_entries);
}
