/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pauses of the session's recording: blocks that are allocated during a pause are not recorded.
 * The time of the allocation decides. Agents also stop sending such events, but only to save work,
 * so it does not matter how soon each of them notices. Frees are always recorded. Owned by the
 * drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PAUSES_H
#define TORSH_WRITER_FOLD_PAUSES_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/input/target.h"
#include "tools/writer/output/rows/rows.h"

struct pauses {
	struct clock_instant *edges; /* stamps at which a pause begins, ends, begins, ... */
	uint32_t n_edges;
	size_t capacity;
};

/* Returns true during a pause. */
static inline bool torsh_pauses_is_paused(const struct pauses *pauses)
{
	return (int)(pauses->n_edges & 1);
}

/*
 * Begin a pause now, or end the current one. Allocations of targets after the return are stamped
 * after the edge.
 */
void torsh_pauses_toggle(struct pauses *pauses, struct target *const *targets, uint32_t n_targets);

/* Pass all edges so far to a target that has just begun. */
void torsh_pauses_publish(const struct pauses *pauses, struct target *target);

/*
 * Put the edges into the session's row, in arrays that torsh_pauses_release frees. Times are
 * relative to zero_ns.
 */
void torsh_pauses_put(const struct pauses *pauses, uint64_t zero_ns, struct rows_session *session);

/* Free the arrays in a row. */
void torsh_pauses_release(struct rows_session *session);

/* Free the edges. */
void torsh_pauses_destroy(struct pauses *pauses);

#endif
