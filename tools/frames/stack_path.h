/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The callers of one recorded stack after another, outermost first. Stacks in the order of their
 * numbers share most callers with the one before: what is known of a caller, which depends on its
 * own callers only, is kept by depth and made once.
 */
#ifndef TORSH_FRAMES_STACK_PATH_H
#define TORSH_FRAMES_STACK_PATH_H

#include "agent/wire/channel.h"
#include "tools/recording/recording.h"

#define STACK_PATH_ROOM (CHANNEL_STACK_MAX + 1u) /* depths, 0 included */

struct stack_path {
	const struct recorded_process *process;
	size_t depth; /* of the last stack; 0: it has no frame */
	uint32_t *stacks; /* by depth, from 1: a caller, up to the last stack itself */
};

/* Start without a stack. The caller ends it. */
void torsh_stack_path_start(struct stack_path *path, const struct recorded_process *process);

/* Free the path. */
void torsh_stack_path_end(struct stack_path *path);

/*
 * Go on to a stack. Returns the first depth where it differs from the stack before;
 * path->depth + 1: nowhere.
 */
size_t torsh_stack_path_take(struct stack_path *path, uint32_t stack);

#endif
