/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where in a block an object may begin behind a header: a pointer to it counts as one to the
 * block's begin. Found from the block's first words; the cases are those that Valgrind knows, and
 * CPython's.
 */
#ifndef TORSH_WRITER_REACHABILITY_OBJECT_BEGINS_H
#define TORSH_WRITER_REACHABILITY_OBJECT_BEGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/image/memory_areas.h"

struct object_begins {
	const struct memory_areas *areas;
	uint8_t *of; /* by block: bits */
};

/* Begin without knowledge of n blocks. The areas stay the caller's. */
void torsh_object_begins_create(struct object_begins *begins, const struct memory_areas *areas,
				uint32_t n);

/* Free it. */
void torsh_object_begins_destroy(struct object_begins *begins);

/* A block of so many bytes begins with these words. */
void torsh_object_begins_note(struct object_begins *begins, uint32_t block, uint64_t size,
			      const uint64_t *words, size_t n);

/* Returns whether an object begins at that offset of the block, behind a header. */
bool torsh_object_begins_at(const struct object_begins *begins, uint32_t block, uint64_t offset);

/*
 * Returns whether the block begins with a table of virtual functions: then a base class may begin
 * wherever another one is.
 */
bool torsh_object_begins_with_table(const struct object_begins *begins, uint32_t block);

/* Returns whether the word may be the address of such a table: of constants of a module. */
bool torsh_object_begins_is_table(const struct object_begins *begins, uint64_t word);

#endif
