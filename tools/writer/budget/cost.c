/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/budget/cost.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0: could not be read */
static uint64_t read_resident(void)
{
	static const char name[] = "\nRssAnon:";
	char text[4096], *found;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	found = strstr(text, name);
	return found ? strtoull(found + sizeof(name) - 1, NULL, 10) << 10 : 0;
}

void torsh_cost_update(struct cost *cost, struct target *const *targets, uint32_t n,
		       const struct program_tables_set *tables)
{
	struct cost now = {.resident_bytes = read_resident()};

	for (uint32_t i = 0; i < n; i++) {
		const struct process_state *state = &targets[i]->state;

		now.live_blocks += state->heap.live.n_blocks + state->heap.small.n_blocks;
		now.live_bytes += torsh_heap_table_bytes(&state->heap);
	}
	for (uint32_t i = 0; i < tables->n; i++)
		now.stacks += tables->items[i]->stacks.n_rows;
	if (now.resident_bytes >= cost->resident_bytes)
		*cost = now;
}
