/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Allocation sites that are one entry for a reader: torsh_sites_merge_alike. */
#include "tools/base/containers/key_index.h"
#include "tools/frames/address_kinds.h"
#include "tools/frames/stack_key.h"
#include "tools/memory/allocation_sites.h"

/* The keys of a process's stacks as a trie: nodes are found by their parent and an address. */
struct key_trie {
	struct address_kinds kinds;
	struct key_index nodes;
	uint32_t n_nodes;
};

static uint32_t node_below(struct key_trie *trie, uint32_t parent, uint32_t address)
{
	uint64_t key = ((uint64_t)parent << 32 | address) + 1; /* not 0 */
	struct key_slot *slot = torsh_key_index_find(&trie->nodes, key);
	uint32_t number;

	if (slot->key)
		return slot->number;
	number = ++trie->n_nodes;
	torsh_key_index_fill(&trie->nodes, slot, key, number);
	return number;
}

static bool has_own_frame(struct key_trie *trie, uint32_t stack)
{
	const struct recorded_process *process = trie->kinds.process;

	while (stack && stack < process->n_stacks) {
		if (torsh_address_kind(&trie->kinds, process->stacks[stack].address) == FRAME_OWN)
			return true;
		stack = process->stacks[stack].parent;
	}
	return false;
}

/* Arenas are what the user's lines filled, however these reached the allocator. */
static uint32_t entry_of(struct key_trie *trie, uint32_t stack, bool is_arena)
{
	const struct recorded_process *process = trie->kinds.process;
	bool is_outer = is_arena, has_own = is_arena || has_own_frame(trie, stack);
	uint32_t node = 0;

	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		uint32_t address = process->stacks[stack].address;
		enum frame_kind kind = torsh_address_kind(&trie->kinds, address);

		if (torsh_stack_key_has(kind, is_outer, has_own))
			node = node_below(trie, node, address);
		is_outer = is_outer || kind == FRAME_OWN;
	}
	return node;
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

static void start_trie(struct key_trie *trie, const struct recorded_process *process,
		       struct symbols *symbols)
{
	torsh_address_kinds_start(&trie->kinds, process, symbols);
	torsh_key_index_create(&trie->nodes);
	trie->n_nodes = 0;
}

static void end_trie(struct key_trie *trie)
{
	torsh_address_kinds_end(&trie->kinds);
	torsh_key_index_destroy(&trie->nodes);
}

void torsh_sites_merge_alike(struct allocation_sites *sites, struct symbols *symbols)
{
	struct key_trie trie = {0};

	if (sites->is_unmerged || sites->depth || sites->view != STACK_VIEW_MERGED)
		return;
	/* Sites of a process follow each other: they were collected so. */
	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site *site = &sites->items[i];

		if (trie.kinds.process != site->process) {
			if (trie.kinds.process)
				end_trie(&trie);
			start_trie(&trie, site->process, symbols);
		}
		site->entry = entry_of(&trie, site->stack, site->is_arena);
	}
	if (trie.kinds.process)
		end_trie(&trie);
	torsh_sites_merge_equal(sites, compare_entries);
}
