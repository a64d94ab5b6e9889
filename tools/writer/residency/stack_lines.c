/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/stack_lines.h"

#include <stdlib.h>

#include "tools/base/memory.h"
#include "tools/writer/fold/program/attributed_frame.h"
#include "tools/writer/fold/program/program_tables.h"

/* What the stacks of an address have, and the one of them with most. */
struct line_bytes {
	uint64_t bytes, pss_bytes, most_bytes;
	uint32_t stack;
};

static uint32_t count_stacks(const struct account *account)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < account->n_of_stacks; i++)
		n += account->of_stacks[i].bytes != 0;
	return n;
}

/* Add up the stacks of each line, without the empty stack, which is in none. */
static void add_up(const struct account *account, const struct attributed_frames *frames,
		   const struct stack_table *stacks, struct line_bytes *lines)
{
	for (uint32_t i = 1; i < account->n_of_stacks; i++) {
		const struct stack_bytes *of = &account->of_stacks[i];
		struct line_bytes *line;

		if (!of->bytes || !of->stack)
			continue;
		line = &lines[torsh_attributed_frames_of(frames, stacks, of->stack).address];
		line->bytes += of->bytes;
		line->pss_bytes += of->pss_bytes;
		if (of->bytes > line->most_bytes ||
		    (of->bytes == line->most_bytes && of->stack < line->stack)) {
			line->most_bytes = of->bytes;
			line->stack = of->stack;
		}
	}
}

static struct stack_bytes of_empty_stack(const struct account *account)
{
	for (uint32_t i = 1; i < account->n_of_stacks; i++) {
		if (!account->of_stacks[i].stack)
			return account->of_stacks[i];
	}
	return (struct stack_bytes){0};
}

void torsh_stack_lines_join(struct account *account, const struct program_tables *tables,
			    uint32_t n_most)
{
	struct attributed_frames frames = {0};
	struct stack_bytes of_empty = of_empty_stack(account);
	struct line_bytes *lines;

	if (count_stacks(account) <= n_most)
		return;
	torsh_attributed_frames_update(&frames, &tables->code, &tables->stacks);
	lines = torsh_memory_new(tables->code.n_addresses, sizeof(*lines));
	add_up(account, &frames, &tables->stacks, lines);
	torsh_attributed_frames_destroy(&frames);
	torsh_account_clear_stacks(account);
	torsh_account_add(account, (struct owner){.kind = OWNER_HEAP}, of_empty.bytes,
			  of_empty.pss_bytes);
	for (uint32_t i = 0; i < tables->code.n_addresses; i++)
		torsh_account_add(account,
				  (struct owner){.kind = OWNER_HEAP, .stack = lines[i].stack},
				  lines[i].bytes, lines[i].pss_bytes);
	free(lines);
}
