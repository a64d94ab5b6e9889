/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/kernel_lines.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_kernel_lines_create(struct kernel_lines *lines)
{
	*lines = (struct kernel_lines){0};
	torsh_key_index_create(&lines->index);
}

void torsh_kernel_lines_destroy(struct kernel_lines *lines)
{
	torsh_key_index_destroy(&lines->index);
	free(lines->items);
}

static struct kernel_line *find_line(struct kernel_lines *lines, const struct kernel_line *wanted)
{
	/* Labels are below 2^30: an agent has at most 2^18 of them. */
	uint64_t key = ((uint64_t)wanted->name << 34 | (uint64_t)wanted->stack << 2 |
			(uint64_t)wanted->what) +
		       1;
	struct key_slot *slot = torsh_key_index_find(&lines->index, key);

	if (slot->key)
		return &lines->items[slot->number];
	lines->items =
		torsh_array_reserve(lines->items, lines->n, &lines->n_room, sizeof(*lines->items));
	lines->items[lines->n] = *wanted;
	torsh_key_index_fill(&lines->index, slot, key, (uint32_t)lines->n);
	return &lines->items[lines->n++];
}

void torsh_kernel_lines_add(struct kernel_lines *lines, const struct activity_record *record,
			    uint32_t stack, bool is_captured)
{
	struct kernel_line *line;

	if (!stack)
		return;
	line = find_line(
		lines, &(struct kernel_line){
			       .what = record->what,
			       .name = record->what == DEVICE_KERNEL ? record->name : record->kind,
			       .stack = stack,
			       .is_captured = is_captured,
		       });
	line->calls++;
	if (!record->is_timed)
		return;
	line->timed++;
	line->total_ns += record->duration_ns;
}
