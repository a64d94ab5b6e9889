/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of samples as a tree: each frame and each node once, numbered from 1. Formats that
 * refer to stacks by number are written from it. Frames are those of the merged view: lines of
 * Python in the place of the interpreter's own frames.
 */
#ifndef TORSH_EXPORT_SAMPLED_STACKS_H
#define TORSH_EXPORT_SAMPLED_STACKS_H

#include "tools/base/containers/key_index.h"
#include "tools/symbols/stack_view.h"

struct sampled_node {
	uint32_t parent; /* lower than its own number; 0: none, it is a root */
	uint32_t frame;
};

struct sampled_stacks {
	struct symbols *symbols; /* NULL: no stack has a node */
	const struct frame **frames; /* by number - 1; owned by the symbols */
	size_t n_frames, frames_room;
	struct sampled_node *nodes; /* by number - 1 */
	size_t n_nodes, nodes_room;
	uint32_t *path; /* the addresses of a stack that is being added, innermost first */
	size_t path_room;
	struct key_index by_frame, by_node, by_stack;
};

/* Create an empty tree. */
void torsh_sampled_stacks_create(struct sampled_stacks *stacks, struct symbols *symbols);

/* Free the tree; the frames stay. */
void torsh_sampled_stacks_free(struct sampled_stacks *stacks);

/* Go on with another recording: numbers of processes are of that one from here on. */
void torsh_sampled_stacks_restart(struct sampled_stacks *stacks, struct symbols *symbols);

/* Returns the node of a stack's innermost frame; 0: it has no frames. */
uint32_t torsh_sampled_stack(struct sampled_stacks *stacks, const struct recorded_process *process,
			     uint32_t stack);

static inline const struct frame *torsh_sampled_frame(const struct sampled_stacks *stacks,
						      uint32_t frame)
{
	return stacks->frames[frame - 1];
}

static inline const struct sampled_node *torsh_sampled_node(const struct sampled_stacks *stacks,
							    uint32_t node)
{
	return &stacks->nodes[node - 1];
}

#endif
