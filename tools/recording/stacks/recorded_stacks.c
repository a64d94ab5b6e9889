/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/stacks/recorded_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

static char *copy_of(const char *text)
{
	return text ? torsh_need(strdup(text)) : NULL;
}

bool torsh_recorded_stacks_take(struct recorded_thread_stacks *stacks,
				const Torsh__ThreadStack *row)
{
	struct recorded_thread_stack *stack;
	size_t n = row->n_function;

	if (!row->has_pid || !row->has_tid || row->n_place != n || row->n_is_python != n)
		return false;
	stacks->items = torsh_array_reserve(stacks->items, stacks->n, &stacks->n_room,
					    sizeof(*stacks->items));
	stack = &stacks->items[stacks->n++];
	*stack = (struct recorded_thread_stack){
		.pid = row->pid,
		.tid = row->tid,
		.at_ns = row->at_ns,
		.name = copy_of(row->name ? row->name : ""),
		.state = copy_of(row->state ? row->state : ""),
		.reason = copy_of(row->reason),
		.frames = torsh_need_items(NULL, 0, n, sizeof(*stack->frames)),
		.n_frames = n,
	};
	for (size_t i = 0; i < n; i++)
		stack->frames[i] =
			(struct recorded_thread_frame){.function = copy_of(row->function[i]),
						       .place = copy_of(row->place[i]),
						       .is_python = row->is_python[i]};
	return true;
}

void torsh_recorded_stacks_free(struct recorded_thread_stacks *stacks)
{
	for (size_t i = 0; i < stacks->n; i++) {
		struct recorded_thread_stack *stack = &stacks->items[i];

		for (size_t k = 0; k < stack->n_frames; k++) {
			free(stack->frames[k].function);
			free(stack->frames[k].place);
		}
		free(stack->frames);
		free(stack->name);
		free(stack->state);
		free(stack->reason);
	}
	free(stacks->items);
}
