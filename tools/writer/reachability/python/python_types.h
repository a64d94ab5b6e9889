/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Types of CPython (3.8 to 3.14, with the GIL) in the memory of a process, found by their
 * addresses: an object names its type, and a type is an object of a type of types.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_TYPES_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/image/memory_reader.h"

#define PYTHON_TYPE_NAME_BYTES 128u

enum python_kind {
	PYTHON_OTHER,
	PYTHON_LIST,
	PYTHON_TUPLE,
	PYTHON_DICT,
	PYTHON_SET,
	PYTHON_DEQUE,
	PYTHON_STR,
	PYTHON_PLAIN, /* int or bytes: it has no pointers */
	PYTHON_TYPE,
	PYTHON_MODULE,
	PYTHON_FRAME,
	PYTHON_GENERATOR, /* or a coroutine */
	PYTHON_CELL, /* of a closure's variable */
	PYTHON_WEAKREF, /* its first field leads nowhere: it keeps nothing */
	PYTHON_ADDRESSES, /* a field of it is an int that is the address of what it keeps */
};

struct python_type {
	uint64_t address;
	uint64_t basic_bytes; /* of its objects, with the head of 16 */
	uint64_t item_bytes; /* of each of the items behind that; 0: they have none */
	uint64_t members; /* address of its PyMemberDef */
	uint32_t flags; /* tp_flags */
	uint8_t object_offset; /* of its objects in their blocks: headers stand before them */
	uint8_t kind; /* enum python_kind */
	char name[PYTHON_TYPE_NAME_BYTES];
};

struct python_types {
	struct memory_reader *reader;
	struct python_type **items; /* which stay at their places */
	uint32_t n;
	size_t capacity;
	uint64_t *addresses; /* a table by hash: addresses that were looked at */
	uint32_t *numbers; /* with them: of the type + 1, or 0 */
	size_t n_slots, n_used;
};

#define NO_PYTHON_TYPE UINT32_MAX

/* Begin without any. The reader stays the caller's. */
void torsh_python_types_create(struct python_types *types, struct memory_reader *reader);

/* Free them. */
void torsh_python_types_destroy(struct python_types *types);

/* Returns the number of the type at the address, or NO_PYTHON_TYPE. */
uint32_t torsh_python_types_at(struct python_types *types, uint64_t address);

/*
 * Returns the number of the type whose object is in a block that begins with these n words, or
 * NO_PYTHON_TYPE: where the object's headers are is known from its type. With is_known_only memory
 * is not searched for types that were not found before.
 */
uint32_t torsh_python_types_of(struct python_types *types, const uint64_t *words, size_t n,
			       bool is_known_only);

/*
 * Returns whether a block that begins with these n words is a frame that is not in use: code
 * objects keep theirs with all it had, until 3.10.
 */
bool torsh_python_types_is_unused_frame(struct python_types *types, const uint64_t *words,
					size_t n);

/* Returns whether the garbage collector keeps lists of its objects, in the 16 bytes before each. */
static inline bool torsh_python_type_is_tracked(const struct python_type *type)
{
	return type->object_offset != 0;
}

#endif
