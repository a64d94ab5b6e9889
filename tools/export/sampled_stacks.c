/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/sampled_stacks.h"

#include <stdlib.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"

void torsh_sampled_stacks_create(struct sampled_stacks *stacks, struct symbols *symbols)
{
	*stacks = (struct sampled_stacks){.symbols = symbols};
	torsh_key_index_create(&stacks->by_frame);
	torsh_key_index_create(&stacks->by_node);
	torsh_key_index_create(&stacks->by_stack);
}

void torsh_sampled_stacks_free(struct sampled_stacks *stacks)
{
	torsh_key_index_destroy(&stacks->by_frame);
	torsh_key_index_destroy(&stacks->by_node);
	torsh_key_index_destroy(&stacks->by_stack);
	free(stacks->frames);
	free(stacks->nodes);
	free(stacks->path);
}

void torsh_sampled_stacks_restart(struct sampled_stacks *stacks, struct symbols *symbols)
{
	torsh_key_index_destroy(&stacks->by_stack);
	torsh_key_index_create(&stacks->by_stack);
	stacks->symbols = symbols;
}

static uint32_t number_frame(struct sampled_stacks *stacks, const struct frame *frame)
{
	struct key_slot *slot = torsh_key_index_find(&stacks->by_frame, (uintptr_t)frame);

	if (slot->key)
		return slot->number;
	stacks->frames = torsh_array_reserve(stacks->frames, stacks->n_frames, &stacks->frames_room,
					     sizeof(*stacks->frames));
	stacks->frames[stacks->n_frames++] = frame;
	torsh_key_index_fill(&stacks->by_frame, slot, (uintptr_t)frame, (uint32_t)stacks->n_frames);
	return (uint32_t)stacks->n_frames;
}

static uint32_t child_of(struct sampled_stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	struct key_slot *slot = torsh_key_index_find(&stacks->by_node, key);

	if (slot->key)
		return slot->number;
	stacks->nodes = torsh_array_reserve(stacks->nodes, stacks->n_nodes, &stacks->nodes_room,
					    sizeof(*stacks->nodes));
	stacks->nodes[stacks->n_nodes++] = (struct sampled_node){.parent = parent, .frame = frame};
	torsh_key_index_fill(&stacks->by_node, slot, key, (uint32_t)stacks->n_nodes);
	return (uint32_t)stacks->n_nodes;
}

static bool is_python(const struct recorded_process *process, uint32_t stack)
{
	uint32_t address = process->tables->stacks[stack].address;

	return address < process->tables->n_addresses &&
	       process->tables->addresses[address].flags == ADDRESS_PYTHON;
}

/* Add the frames of an address, the innermost last. */
static uint32_t add_frames(struct sampled_stacks *stacks, uint32_t node,
			   const struct recorded_process *process, uint32_t address)
{
	const struct frames *at = torsh_symbols_frames(stacks->symbols, process, address);

	for (size_t i = at->n; i > 0; i--) {
		if (!at->frames[i - 1].cut)
			node = child_of(stacks, node, number_frame(stacks, &at->frames[i - 1]));
	}
	return node;
}

/*
 * Other members of a trace have another view of the same process, which can have one view alone:
 * the merged one is decided here frame by frame.
 */
static uint32_t add_stack(struct sampled_stacks *stacks, const struct recorded_process *process,
			  uint32_t stack)
{
	const struct recorded_stack *all = process->tables->stacks;
	uint32_t node = 0, n = 0;
	bool is_inner = true;

	for (; stack; stack = all[stack].parent) {
		is_inner = is_inner && !is_python(process, stack);
		/* It changes nothing but the process's cache of what belongs to the interpreter. */
		if (!torsh_stack_view_shows((struct recorded_process *)process, stack, is_inner,
					    stacks->symbols, STACK_VIEW_MERGED))
			continue;
		stacks->path = torsh_array_reserve(stacks->path, n, &stacks->path_room,
						   sizeof(*stacks->path));
		stacks->path[n++] = all[stack].address;
	}
	while (n-- > 0)
		node = add_frames(stacks, node, process, stacks->path[n]);
	return node;
}

uint32_t torsh_sampled_stack(struct sampled_stacks *stacks, const struct recorded_process *process,
			     uint32_t stack)
{
	uint64_t key = (uint64_t)process->number << 32 | stack;
	struct key_slot *slot;
	uint32_t node;

	if (!stack || !stacks->symbols || stack >= process->tables->n_stacks)
		return 0;
	slot = torsh_key_index_find(&stacks->by_stack, key);
	if (slot->key)
		return slot->number;
	node = add_stack(stacks, process, stack);
	torsh_key_index_fill(&stacks->by_stack, slot, key, node);
	return node;
}
