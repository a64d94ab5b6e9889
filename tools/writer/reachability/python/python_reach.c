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

void torsh_python_reach_find(struct python_reach *found, struct python_heap *heap,
			     const struct pointer_graph *graph)
{
	size_t n = (size_t)graph->index->n + 1;

	*found = (struct python_reach){.modules = NO_BLOCK};
	if (heap->type_of)
		found->modules = find_modules(heap);
	if (found->modules == NO_BLOCK)
		return;
	found->parents = torsh_memory_new(n, sizeof(*found->parents));
	found->order = torsh_memory_new(n, sizeof(*found->order));
	reach(found, found->modules, found->modules);
	for (uint32_t i = 0; i < found->n; i++) {
		uint32_t block = found->order[i];

		for (size_t k = graph->firsts[block]; k < graph->firsts[block + 1]; k++)
			reach(found, graph->pointers[k].block, block);
	}
}

void torsh_python_reach_free(struct python_reach *reach)
{
	free(reach->parents);
	free(reach->order);
	*reach = (struct python_reach){.modules = NO_BLOCK};
}
