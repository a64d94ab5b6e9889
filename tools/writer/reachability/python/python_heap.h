/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPython's small objects: blocks of its own allocator, which no allocator of C sees, and the types
 * of these and of all other blocks that hold objects.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_HEAP_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_HEAP_H

#include "tools/writer/reachability/block_index.h"
#include "tools/writer/reachability/heap_ranges.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/python/python_layout.h"
#include "tools/writer/reachability/python/python_types.h"

struct python_block {
	uint64_t address;
	uint32_t bytes;
	uint32_t type; /* number, or NO_PYTHON_TYPE: part of an object, or a structure of C */
};

struct python_heap {
	bool is_there; /* the process has an interpreter */
	bool has_pools; /* and objects in them, whose types are known */
	struct python_layout layout;
	struct python_types types;
	struct heap_ranges pools;
	struct python_block
		*blocks; /* in use, in the order of addresses; NULL: they are numbered */
	uint32_t n_blocks, n_blocks_max;
	size_t capacity;
	uint64_t pool_bytes, pool_used_bytes;
	uint64_t *large_dicts; /* addresses of their blocks */
	size_t n_large_dicts, large_dicts_capacity;
	const struct block_index *index;
	uint32_t *type_of; /* by block of the index: number of the type + 1, or 0 */
};

/*
 * Find the blocks of CPython's allocator in what the interpreter mapped, at most n_max of them:
 * with more there is none. Returns
 * 0, or -errno if the process is gone. Free with torsh_python_heap_destroy; areas and reader stay
 * the caller's until then.
 */
int torsh_python_heap_find(struct python_heap *heap, const struct heap_ranges *maps,
			   const struct memory_areas *areas, struct memory_reader *reader,
			   uint32_t n_max);

/* Free it. */
void torsh_python_heap_destroy(struct python_heap *heap);

/* Add its blocks to an index that is being filled. */
void torsh_python_heap_add_to(const struct python_heap *heap, struct block_index *index);

/* The index has all blocks: types are known by their numbers from now on. It stays the caller's. */
void torsh_python_heap_number(struct python_heap *heap, const struct block_index *index);

/*
 * A block of the index begins with these words: find its object's type, and set to 0 what leads to
 * other objects without keeping them: the collector's lists and weak references.
 */
void torsh_python_heap_note(struct python_heap *heap, uint32_t block, uint64_t *words, size_t n);

/* Returns the type of the object in the block; NULL: none is known. */
static inline const struct python_type *torsh_python_heap_type(const struct python_heap *heap,
							       uint32_t block)
{
	uint32_t type = heap->type_of ? heap->type_of[block] : 0;

	return type ? heap->types.items[type - 1] : NULL;
}

#endif
