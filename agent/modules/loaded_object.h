/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of a loaded object by its program headers: readable spans and build-id. Damaged unwind
 * information can point anywhere; it is followed only inside these spans.
 */
#ifndef TORSH_AGENT_MODULES_LOADED_OBJECT_H
#define TORSH_AGENT_MODULES_LOADED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Readable segments in whole pages, adjacent ones joined: most objects have one. Segments beyond
 * this number count as unreadable.
 */
#define OBJECT_SPANS 4

struct object_span {
	uintptr_t start, end;
};

struct object_memory {
	uint32_t n;
	struct object_span spans[OBJECT_SPANS];
};

/* The bytes that can be read from address on; 0 outside the object. */
static inline size_t torsh_object_readable(const struct object_memory *memory, uintptr_t address)
{
	for (uint32_t i = 0; i < memory->n; i++)
		if (address - memory->spans[i].start <
		    memory->spans[i].end - memory->spans[i].start)
			return memory->spans[i].end - address;
	return 0;
}

/*
 * Fill *memory for the object mapped from start to end. The caller guarantees that the first page,
 * which holds the headers, is readable. Without usable headers (has_headers is false, or another
 * file is mapped) the whole range counts as readable.
 */
void torsh_object_describe(uintptr_t start, uintptr_t end, bool has_headers,
			   struct object_memory *memory);

/*
 * The whole pages from the unwind information (.eh_frame_hdr, or .eh_frame if that comes first) to
 * the end of its segment, if they are the same as in the file: read-only, without relocations, and
 * without code, which debuggers modify. start is the object's, and its first page is readable.
 * Returns false if there is no such span.
 */
bool torsh_object_clean_span(uintptr_t start, const struct object_memory *memory,
			     uintptr_t eh_frame_hdr, struct object_span *span);

/*
 * The build-id of an object that torsh_object_describe described, *n bytes in the object's memory;
 * NULL if it has none.
 */
const uint8_t *torsh_object_build_id(uintptr_t start, const struct object_memory *memory,
				     uint32_t *n);

#endif
