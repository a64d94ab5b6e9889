/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/arena.h"

#include <string.h>

#include "tools/symbols/symbols.h"

#define FRAMES 5 /* between mmap and the allocator's entry if nothing is inlined */

/*
 * Python 3.8 to 3.11, then 3.12 and later. They also map memory for frames of Python, but then
 * none of the growers calls them.
 */
static const char *const mappers[] = {"_PyObject_ArenaMmap", "_PyMem_ArenaAlloc"};
static const char *const growers[] = {
	"new_arena",	    "allocate_from_new_pool", "pymalloc_alloc",
	"_PyObject_Malloc", "_PyObject_Calloc",	      "_PyObject_Realloc",
};

#define N(names) (sizeof(names) / sizeof(*(names)))

static bool is_among(const char *name, const char *const *names, size_t n)
{
	size_t i = 0;

	/* The compiler may append a variant's suffix: "new_arena.isra.0". */
	while (i < n && (strncmp(name, names[i], strlen(names[i])) != 0 ||
			 !strchr(".", name[strlen(names[i])])))
		i++;
	return i < n;
}

bool torsh_arena_is(struct symbols *symbols, const struct recorded_process *process, uint32_t stack)
{
	uint32_t addresses[FRAMES];
	size_t n = torsh_recording_walk(process, stack, addresses, FRAMES);

	for (size_t i = 0; i < n && i < FRAMES; i++) {
		const char *name = torsh_symbols_name(symbols, process, addresses[i]);

		if (!name || (i == 0 && !is_among(name, mappers, N(mappers))))
			return false;
		if (i > 0 && is_among(name, growers, N(growers)))
			return true;
	}
	return false;
}
