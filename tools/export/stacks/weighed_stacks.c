/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/stacks/weighed_stacks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_weighed_stacks_create(struct weighed_stacks *stacks,
				 const struct recorded_process *process)
{
	*stacks = (struct weighed_stacks){.process = process};
	torsh_sparse_array_create(&stacks->numbers, sizeof(uint32_t));
}

void torsh_weighed_stacks_free(struct weighed_stacks *stacks)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++)
		torsh_usage_list_free(&stacks->weights[i]);
	torsh_sparse_array_destroy(&stacks->numbers);
	free(stacks->items);
	*stacks = (struct weighed_stacks){0};
}

uint32_t torsh_weighed_stacks_add(struct weighed_stacks *stacks, uint32_t stack,
				  enum export_weight weight, uint64_t blocks, uint64_t bytes)
{
	uint32_t *number = torsh_sparse_array_at(&stacks->numbers, stack);

	if (!*number) {
		stacks->items = torsh_array_reserve(stacks->items, stacks->n, &stacks->n_room,
						    sizeof(*stacks->items));
		stacks->items[stacks->n++] = stack;
		*number = (uint32_t)stacks->n;
	}
	torsh_usage_list_add(&stacks->weights[weight], *number - 1, blocks, bytes);
	return *number - 1;
}

void torsh_weighed_stacks_end(struct weighed_stacks *stacks)
{
	torsh_sparse_array_destroy(&stacks->numbers);
}

void torsh_weighed_stacks_sum(const struct weighed_stacks *stacks,
			      struct export_value totals[N_EXPORT_WEIGHTS])
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		struct usage_at at = {0};

		while (torsh_usage_list_next(&stacks->weights[i], &at)) {
			totals[i].blocks += at.blocks;
			totals[i].bytes += at.bytes;
		}
	}
}
