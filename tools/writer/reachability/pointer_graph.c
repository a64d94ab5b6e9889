/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/pointer_graph.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* Objects begin there at most: behind headers, or as a later base class. */
#define DOUBTFUL_BYTES 512u
#define DOUBTFUL_MAX 1000000u /* from then on all are taken for begins */

void torsh_pointer_graph_create(struct pointer_graph *graph, const struct block_index *index)
{
	*graph = (struct pointer_graph){
		.index = index,
		.firsts = torsh_memory_new((size_t)index->n + 1, sizeof(*graph->firsts)),
	};
}

void torsh_pointer_graph_destroy(struct pointer_graph *graph)
{
	torsh_pointer_graph_trim(graph);
	free(graph->root_addresses);
	*graph = (struct pointer_graph){0};
}

/* Returns whether the pointer counts as one to the block's inside for the time being. */
static bool note_interior(struct pointer_graph *graph, uint64_t address, uint64_t offset)
{
	if (offset > DOUBTFUL_BYTES || offset % sizeof(uint64_t))
		return true;
	if (graph->n_doubtful == DOUBTFUL_MAX)
		return false;
	graph->doubtful = torsh_array_reserve(graph->doubtful, graph->n_doubtful,
					      &graph->doubtful_capacity, sizeof(*graph->doubtful));
	graph->doubtful[graph->n_doubtful++] =
		(struct doubtful_pointer){.address = address, .number = graph->n_pointers};
	return true;
}

/* Objects of Python begin behind headers, and pointers to them may have bits set: none in doubt. */
static bool note_offset(struct pointer_graph *graph, uint64_t address, uint32_t block)
{
	const struct indexed_block *of = &graph->index->blocks[block];
	uint64_t offset = address - of->address;

	return offset && !torsh_block_is_python(of) && note_interior(graph, address, offset);
}

/* Only the garbage collector's lists lead to its header of an object; low bits are its marks. */
static bool is_of_collector(const struct pointer_graph *graph, uint64_t address, uint32_t block)
{
	const struct indexed_block *of = &graph->index->blocks[block];

	return torsh_block_is_python(of) && torsh_block_object_offset(of) &&
	       (address & ~UINT64_C(7)) - of->address == torsh_block_object_offset(of) - 16;
}

static void add_pointer(struct pointer_graph *graph, uint64_t address, uint32_t block)
{
	bool is_interior = note_offset(graph, address, block);

	graph->pointers = torsh_array_reserve(graph->pointers, graph->n_pointers, &graph->capacity,
					      sizeof(*graph->pointers));
	graph->pointers[graph->n_pointers++] =
		(struct pointer){.block = block & INT32_MAX, .is_interior = is_interior};
}

static void add_root_address(struct pointer_graph *graph, uint64_t address)
{
	graph->root_addresses =
		torsh_array_reserve(graph->root_addresses, graph->n_pointers, &graph->root_capacity,
				    sizeof(*graph->root_addresses));
	graph->root_addresses[graph->n_pointers] = address;
}

/* Blocks up to this one, without it, have all of their pointers. */
static void pass_blocks(struct pointer_graph *graph, uint32_t block)
{
	while (graph->n_blocks < block)
		graph->firsts[++graph->n_blocks] = (uint32_t)graph->n_pointers;
}

/* Look the candidates up together. */
static void settle_candidates(struct pointer_graph *graph)
{
	struct pointer_candidates *candidates = &graph->candidates;
	uint32_t found[BLOCK_INDEX_MANY];

	torsh_block_index_find_many(graph->index, candidates->words, candidates->n, found);
	for (size_t i = 0; i < candidates->n; i++) {
		uint32_t from = candidates->blocks[i];

		if (from != NO_BLOCK)
			pass_blocks(graph, from);
		if (found[i] == NO_BLOCK || found[i] == from ||
		    is_of_collector(graph, candidates->words[i], found[i]))
			continue;
		if (from == NO_BLOCK)
			add_root_address(graph, candidates->places[i]);
		add_pointer(graph, candidates->words[i], found[i]);
	}
	candidates->n = 0;
}

static void add_words(struct pointer_graph *graph, uint32_t from, uint64_t address,
		      const uint64_t *words, size_t n)
{
	struct pointer_candidates *candidates = &graph->candidates;
	uint64_t begin = graph->index->begin, length = graph->index->end - begin;

	graph->n_words += n;
	for (size_t i = 0; i < n; i++) {
		if (words[i] - begin >= length)
			continue;
		candidates->words[candidates->n] = words[i];
		candidates->places[candidates->n] = address ? address + i * sizeof(*words) : 0;
		candidates->blocks[candidates->n++] = from;
		if (candidates->n == BLOCK_INDEX_MANY)
			settle_candidates(graph);
	}
}

void torsh_pointer_graph_add_root(struct pointer_graph *graph, uint64_t address,
				  const uint64_t *words, size_t n)
{
	add_words(graph, NO_BLOCK, address, words, n);
}

static void end_roots(struct pointer_graph *graph)
{
	if (graph->has_roots)
		return;
	settle_candidates(graph);
	graph->has_roots = true;
	graph->n_roots = graph->n_pointers;
	graph->firsts[0] = (uint32_t)graph->n_pointers;
}

void torsh_pointer_graph_add_words(struct pointer_graph *graph, uint32_t block,
				   const uint64_t *words, size_t n)
{
	end_roots(graph);
	add_words(graph, block, 0, words, n);
}

void torsh_pointer_graph_end(struct pointer_graph *graph)
{
	end_roots(graph);
	settle_candidates(graph);
	pass_blocks(graph, graph->index->n);
}

void torsh_pointer_graph_trim(struct pointer_graph *graph)
{
	free(graph->pointers);
	free(graph->firsts);
	free(graph->doubtful);
	graph->pointers = NULL;
	graph->firsts = NULL;
	graph->doubtful = NULL;
}

void torsh_pointer_graph_settle(struct pointer_graph *graph, const struct doubtful_pointer *pointer)
{
	graph->pointers[pointer->number].is_interior = false;
}
