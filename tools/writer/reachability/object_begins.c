/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/object_begins.h"

#include <stdlib.h>

#include "tools/base/memory.h"

enum {
	BEGINS_BEHIND_NUMBER = 1, /* at 8: an array of C++, or memory behind its length */
	BEGINS_BEHIND_GC = 2, /* at 16: an object of Python that its garbage collector tracks */
	BEGINS_BEHIND_GC_AND_FIELDS = 4, /* at 32: likewise, with pointers before that header */
	BEGINS_WITH_TABLE = 8,
};

void torsh_object_begins_create(struct object_begins *begins, const struct memory_areas *areas,
				uint32_t n)
{
	*begins = (struct object_begins){
		.areas = areas,
		.of = torsh_memory_new((size_t)n + 1, sizeof(*begins->of)),
	};
}

void torsh_object_begins_destroy(struct object_begins *begins)
{
	free(begins->of);
	begins->of = NULL;
}

bool torsh_object_begins_is_table(const struct object_begins *begins, uint64_t word)
{
	const struct memory_area *area =
		word % sizeof(word) ? NULL : torsh_memory_areas_find(begins->areas, word);

	return area && area->is_file && !area->is_writable;
}

/* The number of an array's items, or of the bytes that follow. */
static bool is_number(uint64_t word, uint64_t size)
{
	return word && size > 8 && (size - 8) % word == 0;
}

/* A count of references, and a type. */
static bool is_python_object(const struct object_begins *begins, const uint64_t *words)
{
	return words[0] && words[0] >> 62 == 0 && words[1] && words[1] % sizeof(*words) == 0 &&
	       torsh_memory_areas_find(begins->areas, words[1]);
}

void torsh_object_begins_note(struct object_begins *begins, uint32_t block, uint64_t size,
			      const uint64_t *words, size_t n)
{
	uint8_t bits = 0;

	if (n >= 1 && is_number(words[0], size))
		bits |= BEGINS_BEHIND_NUMBER;
	if (n >= 4 && is_python_object(begins, words + 2))
		bits |= BEGINS_BEHIND_GC;
	if (n >= 6 && is_python_object(begins, words + 4))
		bits |= BEGINS_BEHIND_GC_AND_FIELDS;
	if (n >= 1 && torsh_object_begins_is_table(begins, words[0]))
		bits |= BEGINS_WITH_TABLE;
	begins->of[block] = bits;
}

bool torsh_object_begins_at(const struct object_begins *begins, uint32_t block, uint64_t offset)
{
	uint8_t bits = begins->of[block];

	return (offset == 8 && bits & BEGINS_BEHIND_NUMBER) ||
	       (offset == 16 && bits & BEGINS_BEHIND_GC) ||
	       (offset == 32 && bits & BEGINS_BEHIND_GC_AND_FIELDS);
}

bool torsh_object_begins_with_table(const struct object_begins *begins, uint32_t block)
{
	return begins->of[block] & BEGINS_WITH_TABLE;
}
