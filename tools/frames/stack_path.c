/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/stack_path.h"

#include <stdlib.h>

#include "tools/base/die.h"

void torsh_stack_path_start(struct stack_path *path, const struct recorded_process *process)
{
	*path = (struct stack_path){
		.process = process,
		.stacks = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*path->stacks)),
	};
}

void torsh_stack_path_end(struct stack_path *path)
{
	free(path->stacks);
	*path = (struct stack_path){0};
}

size_t torsh_stack_path_take(struct stack_path *path, uint32_t stack)
{
	const struct recorded_stack *stacks = path->process->tables->stacks;
	size_t before = path->depth, depth;

	path->depth = depth =
		stack && stack < path->process->tables->n_stacks ? stacks[stack].depth : 0;
	/* A row that is missing has no depth, and no caller. */
	if (stack && stack < path->process->tables->n_stacks && !depth)
		path->depth = depth = 1;
	/* A stack has at least as many callers as its depth says. */
	for (; depth && (depth > before || path->stacks[depth] != stack); depth--) {
		path->stacks[depth] = stack;
		stack = stacks[stack].parent;
	}
	return depth + 1;
}
