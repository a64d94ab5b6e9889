/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names the objects of Python on a way from a root to a block, as a program of Python would. */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_NAMES_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_NAMES_H

#include "tools/writer/reachability/python/python_heap.h"

/* A block of a way. */
struct python_name {
	char *name; /* of its object: "train.history[3]"; NULL: it has none. The caller frees it */
	const char *type; /* of its object, as long as the heap is there; NULL: it has none */
	bool is_inner; /* a part of an object, which a program doesn't see */
};

/*
 * Fill names for the n blocks of a way, the root's first; root is the name of a variable that leads
 * to that one, or NULL.
 */
void torsh_python_names_find(struct python_heap *heap, const uint32_t *way, uint32_t n,
			     const char *root, struct python_name *names);

/* Returns the address of the block's object. */
uint64_t torsh_python_object(const struct python_heap *heap, uint32_t block);

#endif
