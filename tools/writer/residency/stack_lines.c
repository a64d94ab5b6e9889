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

	for (uint32_t i = 0; i < account->n_stacks; i++)
		n += account->of_stacks[i].bytes != 0;
	return n;
}

static void add_up(struct account *account, const struct attributed_frames *frames,
		   struct line_bytes *lines)
{
	for (uint32_t i = 1; i < account->n_stacks; i++) {
		struct stack_bytes *stack = &account->of_stacks[i];
		struct line_bytes *line = &lines[frames->items[i].address];

		if (!stack->bytes)
			continue;
		line->bytes += stack->bytes;
		line->pss_bytes += stack->pss_bytes;
		if (stack->bytes > line->most_bytes) {
			line->most_bytes = stack->bytes;
			line->stack = i;
		}
		*stack = (struct stack_bytes){0};
	}
}

void torsh_stack_lines_join(struct account *account, const struct program_tables *tables,
			    uint32_t n_most)
{
	struct attributed_frames frames = {0};
	struct line_bytes *lines;

	if (count_stacks(account) <= n_most)
		return;
	torsh_attributed_frames_update(&frames, &tables->code, &tables->stacks);
	lines = torsh_memory_new(tables->code.n_addresses, sizeof(*lines));
	add_up(account, &frames, lines);
	for (uint32_t i = 0; i < tables->code.n_addresses; i++) {
		if (lines[i].bytes)
			account->of_stacks[lines[i].stack] = (struct stack_bytes){
				.bytes = lines[i].bytes, .pss_bytes = lines[i].pss_bytes};
	}
	free(lines);
	torsh_attributed_frames_destroy(&frames);
}
