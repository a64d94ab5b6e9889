/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/program/attributed_frame.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

enum { RANK_NONE, RANK_ANY, RANK_PROGRAM, RANK_IMPORT, RANK_PYTHON };

static uint32_t rank_of_python(const char *file)
{
	/* An import is attributed to the program's line that triggers it. */
	if (!strcmp(file, AGENT_PYTHON_FILE))
		return RANK_ANY;
	return strncmp(file, "<frozen importlib.", 18) ? RANK_PYTHON : RANK_IMPORT;
}

/* Prefixes of the installed file names of the C and C++ libraries. */
static bool is_run_time(const char *path)
{
	static const char *const names[] = {"libc.so",	"libc-",     "libstdc++.",
					    "ld-linux", "libgcc_s.", "libpthread"};
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; slash && i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(slash + 1, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static uint32_t rank_of(const struct code_table *code, uint32_t number)
{
	const struct code_address *address = &code->addresses[number];

	if (address->module == CHANNEL_NO_MODULE || address->flags > ADDRESS_PYTHON)
		return RANK_ANY;
	if (address->flags == ADDRESS_PYTHON)
		return rank_of_python(code->functions[address->module].file);
	return is_run_time(code->modules[address->module].path) ? RANK_ANY : RANK_PROGRAM;
}

void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code, const struct stack_table *stacks)
{
	uint8_t *ranks = attributed->n < stacks->n_rows
				 ? torsh_memory_new(code->n_addresses, sizeof(*ranks))
				 : NULL;

	while (attributed->n < stacks->n_rows) {
		uint32_t stack = attributed->n++, address;
		struct attributed_frame *own;

		attributed->items =
			torsh_array_reserve(attributed->items, stack, &attributed->capacity,
					    sizeof(*attributed->items));
		if (!stack)
			continue;
		own = &attributed->items[stack];
		address = torsh_stacks_address(stacks, stack);
		if (!ranks[address])
			ranks[address] = (uint8_t)rank_of(code, address);
		*own = attributed->items[torsh_stacks_parent(stacks, stack)];
		if (ranks[address] >= own->rank)
			*own = (struct attributed_frame){.address = address,
							 .rank = ranks[address]};
	}
	free(ranks);
}

void torsh_attributed_frames_destroy(struct attributed_frames *attributed)
{
	free(attributed->items);
}
