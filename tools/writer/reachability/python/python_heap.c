/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_heap.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/allocator_maps.h"
#include "tools/writer/reachability/python/python_pools.h"

#define HEADER_WORDS 2u /* of the garbage collector, before an object */
#define SIZE_WORD 2u /* of a dict: how many keys it has */
#define LARGE_DICT 20u
#define REFERENT_WORD 2u /* of a weak reference */

/* ---- pools ----------------------------------------------------------------------------------- */

static void note_large_dict(struct python_heap *heap, uint64_t address)
{
	heap->large_dicts =
		torsh_array_reserve(heap->large_dicts, heap->n_large_dicts,
				    &heap->large_dicts_capacity, sizeof(*heap->large_dicts));
	heap->large_dicts[heap->n_large_dicts++] = address;
}

/* n of the block's words are known. */
static void add_block(struct python_heap *heap, uint64_t address, uint32_t bytes,
		      const uint64_t *words, size_t n)
{
	const struct python_type *type;
	const struct python_block *block;

	heap->blocks = torsh_array_reserve(heap->blocks, heap->n_blocks, &heap->capacity,
					   sizeof(*heap->blocks));
	heap->pool_used_bytes += bytes;
	heap->blocks[heap->n_blocks++] = (struct python_block){
		.address = address,
		.bytes = bytes,
		.type = torsh_python_types_of(&heap->types, words, n, false),
	};
	block = &heap->blocks[heap->n_blocks - 1];
	type = block->type == NO_PYTHON_TYPE ? NULL : heap->types.items[block->type];
	if (type && type->kind == PYTHON_DICT &&
	    n > type->object_offset / sizeof(*words) + SIZE_WORD &&
	    words[type->object_offset / sizeof(*words) + SIZE_WORD] >= LARGE_DICT)
		note_large_dict(heap, address);
}

static void add_pool(void *context, const struct pymalloc_pool *pool, const uint64_t *words,
		     size_t n)
{
	struct python_heap *heap = context;
	size_t n_of_block = pool->block_bytes / sizeof(*words);

	torsh_heap_ranges_add(&heap->pools, pool->address, pool->address + pool->bytes);
	heap->pool_bytes += pool->bytes;
	for (uint32_t i = 0; i < pool->n_blocks && heap->n_blocks <= heap->n_blocks_max; i++) {
		uint32_t offset = pool->first + i * pool->block_bytes;
		size_t first = offset / sizeof(*words), left = first < n ? n - first : 0;

		if (torsh_pymalloc_is_used(pool, i))
			add_block(heap, pool->address + offset, pool->block_bytes, words + first,
				  left < n_of_block ? left : n_of_block);
	}
}

static bool has_interpreter(const struct memory_areas *areas)
{
	for (uint32_t i = 0; i < areas->n; i++) {
		if (areas->items[i].path && torsh_is_python(areas->items[i].path))
			return true;
	}
	return false;
}

int torsh_python_heap_find(struct python_heap *heap, const struct heap_ranges *maps,
			   const struct memory_areas *areas, struct memory_reader *reader,
			   uint32_t n_max)
{
	struct python_pools pools = {.take = add_pool, .context = heap};
	int result = 0;

	*heap = (struct python_heap){.is_there = has_interpreter(areas), .n_blocks_max = n_max};
	if (!heap->is_there)
		return 0;
	torsh_python_layout_find(&heap->layout, areas, reader);
	torsh_python_types_create(&heap->types, reader);
	for (uint32_t i = 0; !result && i < maps->n; i++)
		result = torsh_python_pools_visit(&pools, &maps->items[i], reader);
	heap->has_pools = heap->n_blocks > 0;
	if (heap->n_blocks > n_max) {
		heap->n_blocks = 0;
		torsh_heap_ranges_free(&heap->pools);
	}
	if (result)
		torsh_python_heap_destroy(heap);
	return result;
}

void torsh_python_heap_destroy(struct python_heap *heap)
{
	torsh_python_types_destroy(&heap->types);
	torsh_heap_ranges_free(&heap->pools);
	free(heap->blocks);
	free(heap->large_dicts);
	free(heap->type_of);
	*heap = (struct python_heap){0};
}

/* ---- the index ------------------------------------------------------------------------------- */

void torsh_python_heap_add_to(const struct python_heap *heap, struct block_index *index)
{
	for (uint32_t i = 0; i < heap->n_blocks; i++) {
		const struct python_block *block = &heap->blocks[i];
		uint32_t headers = block->type == NO_PYTHON_TYPE
					   ? 0
					   : heap->types.items[block->type]->object_offset / 16;

		torsh_block_index_add(index, block->address, block->bytes,
				      FIRST_PYTHON_SITE + headers);
	}
}

void torsh_python_heap_number(struct python_heap *heap, const struct block_index *index)
{
	uint32_t next = 0;

	heap->index = index;
	if (!heap->is_there)
		return;
	heap->type_of = torsh_memory_new((size_t)index->n + 1, sizeof(*heap->type_of));
	for (uint32_t i = 0; i < index->n; i++) {
		while (next < heap->n_blocks &&
		       heap->blocks[next].address < index->blocks[i].address)
			next++;
		if (next < heap->n_blocks && torsh_block_is_python(&index->blocks[i]))
			heap->type_of[i] = heap->blocks[next].type + 1;
	}
	free(heap->blocks);
	heap->blocks = NULL;
}

/* A str of ASCII alone is followed by its text, and has no pointers. */
static bool is_ascii(const uint64_t *words)
{
	/* kind 1, compact, ascii; since 3.14 they are further up */
	enum { STATE_WORD = 4, FIVE_BITS = 31, ASCII = 25 };
	uint64_t state = words[STATE_WORD];

	return (state >> 2 & FIVE_BITS) == ASCII || (state >> 16 & FIVE_BITS) == ASCII;
}

/* Returns how many of the object's words may be pointers: those behind are of former objects. */
static uint64_t words_in_use(const struct python_type *type, const uint64_t *words, size_t n)
{
	uint64_t bytes = type->basic_bytes;

	if (type->kind == PYTHON_PLAIN || (type->kind == PYTHON_STR && n > 4 && is_ascii(words)))
		return 2;
	if (type->kind == PYTHON_TUPLE && n > SIZE_WORD)
		bytes += words[SIZE_WORD] * type->item_bytes;
	else if (type->item_bytes || n * sizeof(*words) - bytes >= 16)
		return n;
	return bytes / sizeof(*words);
}

static void blank(uint64_t *words, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		words[i] = 0;
}

/*
 * A frame that came to its end, until 3.10, keeps its variables, and what its stack had: returns
 * how many words are before that.
 */
static uint64_t words_of_frame(const struct python_heap *heap, uint64_t object,
			       const uint64_t *words, size_t n)
{
	enum { STACK_WORD = 8, TOP_WORD = 9, EXECUTING_WORD = 14, STATE_WORD = 13, RETURNED = 1 };
	uint64_t first;
	bool is_ended;

	if (!heap->layout.is_known || heap->layout.at.frame_object_frame || n <= EXECUTING_WORD)
		return n;
	is_ended = heap->layout.at.instruction == CPYTHON_UNITS
			   ? (int32_t)(words[STATE_WORD] >> 32) >= RETURNED
			   : !words[TOP_WORD] && !(words[EXECUTING_WORD] >> 32 & UINT8_MAX);
	first = (words[STACK_WORD] - object) / sizeof(*words);
	return is_ended && first < n ? first : n;
}

/* Returns the number of an int of two digits of 30 bits, as addresses are; 0 if it is none. */
static uint64_t address_in(const struct python_heap *heap, uint64_t object)
{
	enum { SIZE = 2, DIGITS = 3, TWO_DIGITS = 2, TWO_DIGITS_3_12 = 2 << 3, DIGIT_BITS = 30 };
	uint64_t words[DIGITS + 1];

	if (!object || object % 8 ||
	    torsh_memory_copy(heap->types.reader, object, words, sizeof(words)) != sizeof(words) ||
	    (words[SIZE] != TWO_DIGITS && words[SIZE] != TWO_DIGITS_3_12))
		return 0;
	return (words[DIGITS] >> 32) << DIGIT_BITS | (words[DIGITS] & UINT32_MAX);
}

/* Put addresses that fields have as ints in place of these. */
static void show_addresses(const struct python_heap *heap, uint64_t *words, size_t n)
{
	for (size_t i = HEADER_WORDS; i < n; i++) {
		uint64_t address = address_in(heap, words[i]);
		uint32_t block = address ? torsh_block_index_find(heap->index, address) : NO_BLOCK;

		if (block != NO_BLOCK && heap->index->blocks[block].address == address)
			words[i] = address;
	}
}

void torsh_python_heap_note(struct python_heap *heap, uint32_t block, uint64_t *words, size_t n)
{
	const struct python_type *type;
	uint32_t first;

	if (!heap->type_of)
		return;
	if (!torsh_block_is_python(&heap->index->blocks[block]))
		heap->type_of[block] =
			torsh_python_types_of(&heap->types, words, n, heap->has_pools) + 1;
	type = torsh_python_heap_type(heap, block);
	if (!type) {
		if (torsh_python_types_is_unused_frame(&heap->types, words, n))
			blank(words, 0, n);
		return;
	}
	/* The end of what was read may cut the object. */
	first = type->object_offset / sizeof(*words);
	if (first >= n)
		return;
	if (torsh_python_type_is_tracked(type))
		blank(words, first - HEADER_WORDS, first);
	if (type->kind == PYTHON_FRAME) {
		uint64_t object = heap->index->blocks[block].address + type->object_offset;

		blank(words, first + words_of_frame(heap, object, words + first, n - first), n);
	}
	if (type->kind == PYTHON_ADDRESSES)
		show_addresses(heap, words + first, n - first);
	if (type->kind == PYTHON_WEAKREF && first + REFERENT_WORD < n)
		words[first + REFERENT_WORD] = 0;
	if (torsh_block_is_python(&heap->index->blocks[block]))
		blank(words, first + words_in_use(type, words + first, n - first), n);
}
