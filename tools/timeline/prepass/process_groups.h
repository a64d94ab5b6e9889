/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process groups of collectives, as the timeline reports them, each before its first collective.
 * Also the data that a PyTorch collective moved, from its process's view.
 */
#ifndef TORSH_TIMELINE_PREPASS_PROCESS_GROUPS_H
#define TORSH_TIMELINE_PREPASS_PROCESS_GROUPS_H

#include "tools/timeline/inputs.h"
#include "tools/timeline/spans.h"

struct process_group {
	const struct recorded_process *process;
	uint32_t number;
	/* texts of the recording; NULL: unknown */
	const char *name, *description, *backend, *ranks;
	uint32_t n_ranks, own_rank; /* own_rank: of the process in it + 1; 0: unknown */
};

struct process_groups {
	struct process_group *items;
	size_t n, n_room;
};

/* Add a process group; its texts are the recording's. */
void torsh_groups_add(struct process_groups *groups, const struct recorded_process *process,
		      const struct event_process_group *event);

/* Free the groups. */
void torsh_groups_free(struct process_groups *groups);

struct collective {
	const struct process_group *group;
	const char *name; /* "allreduce": the operator's name without its trailing "_" */
	size_t n_name;
	const struct input *tensor; /* the first tensor, for its type. NULL: none */
	uint64_t in_elements, out_elements;
};

/*
 * Get the data that the span moves, from its inputs, which must outlive *collective. Returns false
 * if it is no collective of a known group.
 */
bool torsh_collective_read(struct collective *collective, const struct process_groups *groups,
			   const struct span *span, const struct inputs *inputs);

/* Returns true for an operator of c10d; others need not be queried. */
bool torsh_span_is_collective(const struct span *span);

/* Collectives of a pass, in its order. Starts as {0}; torsh_groups_free(&groups) at the end. */
struct collectives {
	struct process_groups groups;
	struct inputs inputs; /* of the last query */
};

/*
 * Get the data that the span moves, valid until the next query. Returns false if it is no
 * collective of a known group.
 */
bool torsh_collectives_read(struct collectives *collectives, const struct span *span,
			    struct collective *collective);

#endif
