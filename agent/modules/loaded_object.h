/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A loaded object's memory by its program headers: the readable spans, and the build-id. Damaged
 * unwind information leads anywhere; it is followed only inside these spans.
 */
#ifndef TORSH_AGENT_MODULES_LOADED_OBJECT_H
#define TORSH_AGENT_MODULES_LOADED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Readable segments, whole pages, neighbours joined: most objects have one. Further ones are taken
 * for unreadable.
 */
#define OBJECT_SPANS 4

struct object_span {
	uintptr_t start, end;
};

struct object_memory {
	uint32_t n;
	struct object_span spans[OBJECT_SPANS];
};

/* The bytes that can be read from address on; 0 outside of the object. */
static inline size_t torsh_object_readable(const struct object_memory *memory, uintptr_t address)
{
	for (uint32_t i = 0; i < memory->n; i++)
		if (address - memory->spans[i].start <
		    memory->spans[i].end - memory->spans[i].start)
			return memory->spans[i].end - address;
	return 0;
}

/*
 * Fill *memory for the object that is mapped from start to end. Its headers lie in its first page,
 * which the caller knows to be readable; where they can't be found there (has_headers false, or
 * another file), all of it is taken for readable.
 */
void torsh_object_describe(uintptr_t start, uintptr_t end, bool has_headers,
			   struct object_memory *memory);

/*
 * The whole pages from the unwind information (.eh_frame_hdr, and .eh_frame where it comes first)
 * to the end of its segment, where they hold what the file does: nobody may write there, no
 * relocation goes there, and no code is there, into which debuggers write. start is that of the
 * object, whose headers can be read in its first page. False: none.
 */
bool torsh_object_clean_span(uintptr_t start, const struct object_memory *memory,
			     uintptr_t eh_frame_hdr, struct object_span *span);

/* The build-id of an object that was described, *n bytes in its memory; NULL when it has none. */
const uint8_t *torsh_object_build_id(uintptr_t start, const struct object_memory *memory,
				     uint32_t *n);

#endif
