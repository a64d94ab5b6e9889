/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_reach.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_text.h"

enum { DICT_KEYS = 32 }; /* offset in PyDictObject */

static uint64_t object_at(const struct python_heap *heap, uint32_t block)
{
	return heap->index->blocks[block].address +
	       torsh_python_heap_type(heap, block)->object_offset;
}

/* The interpreter imports these two first. */
static bool is_modules(struct python_heap *heap, uint32_t block)
{
	uint64_t keys = torsh_memory_word(heap->types.reader, object_at(heap, block) + DICT_KEYS);
	char key[PYTHON_TEXT_BYTES];

	return torsh_python_key(&heap->types, keys, 0, key) && !strcmp(key, "sys") &&
	       torsh_python_key(&heap->types, keys, 1, key) && !strcmp(key, "builtins");
}

static uint32_t find_modules(struct python_heap *heap)
{
	for (size_t i = 0; i < heap->n_large_dicts; i++) {
		uint32_t block = torsh_block_index_find(heap->index, heap->large_dicts[i]);

		if (block != NO_BLOCK && torsh_python_heap_type(heap, block) &&
		    is_modules(heap, block))
			return block;
	}
	return NO_BLOCK;
}

static void reach(struct python_reach *reach, uint32_t block, uint32_t parent)
{
	if (reach->parents[block])
		return;
	reach->parents[block] = parent + 1;
	reach->order[reach->n++] = block;
}

static void reach_next(struct python_reach *found, const struct pointer_graph *graph,
		       uint32_t block)
{
	for (size_t k = graph->firsts[block]; k < graph->firsts[block + 1]; k++)
		reach(found, graph->pointers[k].block, block);
}

/* Go on with what is reached by now, but for blocks with frames that are running. */
static void reach_others(struct python_reach *found, const struct pointer_graph *graph,
			 const bool *is_running)
{
	while (found->n_followed < found->n) {
		uint32_t block = found->order[found->n_followed++];

		if (!is_running || !is_running[block])
			reach_next(found, graph, block);
	}
}

/*
 * A running frame is linked to others, and what runs is in lists of an event loop: their variables
 * are nearer. Returns the blocks that have one, frames, generators and coroutines; NULL: none has.
 */
static bool *mark_frames(const struct python_frames *frames, const struct block_index *index)
{
	bool *is_running = NULL;

	for (uint32_t i = 0; i < 2 * frames->n_frames; i++) {
		const struct python_frame *frame = &frames->frames[i / 2];
		uint64_t address = i % 2 ? frame->generator : frame->address;
		uint32_t block = address ? torsh_block_index_find(index, address) : NO_BLOCK;

		if (block == NO_BLOCK)
			continue;
		if (!is_running)
			is_running = torsh_memory_new((size_t)index->n + 1, sizeof(*is_running));
		is_running[block] = true;
	}
	return is_running;
}

void torsh_python_reach_find(struct python_reach *found, struct python_heap *heap,
			     const struct pointer_graph *graph)
{
	size_t n = (size_t)graph->index->n + 1;
	bool *is_running;

	*found = (struct python_reach){.modules = NO_BLOCK};
	if (heap->type_of)
		found->modules = find_modules(heap);
	if (found->modules == NO_BLOCK)
		return;
	found->parents = torsh_memory_new(n, sizeof(*found->parents));
	found->order = torsh_memory_new(n, sizeof(*found->order));
	torsh_python_frames_find(&found->frames, &heap->layout, &heap->types, heap->index);
	is_running = mark_frames(&found->frames, heap->index);
	reach(found, found->modules, found->modules);
	reach_others(found, graph, is_running);
	for (uint32_t i = 0; i < found->frames.n_variables; i++)
		reach(found, found->frames.variables[i].block, found->frames.variables[i].block);
	reach_others(found, graph, is_running);
	for (uint32_t i = 0; is_running && i < found->n; i++) {
		if (is_running[found->order[i]])
			reach_next(found, graph, found->order[i]);
	}
	reach_others(found, graph, NULL);
	free(is_running);
}

const struct python_variable *torsh_python_reach_variable(const struct python_reach *reach,
							  uint32_t block)
{
	for (uint32_t i = 0; block != reach->modules && i < reach->frames.n_variables; i++) {
		if (reach->frames.variables[i].block == block)
			return &reach->frames.variables[i];
	}
	return NULL;
}

void torsh_python_reach_free(struct python_reach *reach)
{
	free(reach->parents);
	free(reach->order);
	torsh_python_frames_free(&reach->frames);
	*reach = (struct python_reach){.modules = NO_BLOCK};
}
