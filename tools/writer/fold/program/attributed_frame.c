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

static struct attributed_frame better_of(const struct attributed_frames *attributed,
					 struct attributed_frame outer, uint32_t address)
{
	uint32_t rank = attributed->ranks[address];

	return rank >= outer.rank ? (struct attributed_frame){.address = address, .rank = rank}
				  : outer;
}

struct attributed_frame torsh_attributed_frames_of(const struct attributed_frames *attributed,
						   const struct stack_table *stacks, uint32_t stack)
{
	struct attributed_frame frame;
	uint32_t at = stack;

	while (torsh_stacks_follows_parent(stacks, at))
		at--;
	frame = attributed->items[stacks->rows[at] / 2];
	while (at++ < stack)
		frame = better_of(attributed, frame, torsh_stacks_address(stacks, at));
	return frame;
}

void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code, const struct stack_table *stacks)
{
	attributed->ranks = torsh_array_extend(attributed->ranks, code->n_addresses,
					       &attributed->n_ranks, sizeof(*attributed->ranks));
	for (uint32_t i = attributed->n_ranked; i < code->n_addresses; i++)
		attributed->ranks[i] = (uint8_t)rank_of(code, i);
	attributed->n_ranked = code->n_addresses;
	while (attributed->n < stacks->n_branches) {
		const struct stack_branch *branch = &stacks->branches[attributed->n];
		struct attributed_frame frame = {0};

		if (attributed->n)
			frame = better_of(
				attributed,
				torsh_attributed_frames_of(attributed, stacks, branch->parent),
				branch->address);
		attributed->items =
			torsh_array_reserve(attributed->items, attributed->n, &attributed->capacity,
					    sizeof(*attributed->items));
		attributed->items[attributed->n++] = frame;
	}
}

void torsh_attributed_frames_destroy(struct attributed_frames *attributed)
{
	free(attributed->items);
	free(attributed->ranks);
}
