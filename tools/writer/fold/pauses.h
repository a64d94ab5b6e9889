/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When the session's recording was paused: blocks that were allocated then are not recorded. The
 * moment at which a block was allocated decides; that agents stop sending such events only saves
 * work, so that it doesn't matter how soon one of them notices. Frees are recorded all the while.
 * Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PAUSES_H
#define TORSH_WRITER_FOLD_PAUSES_H

#include <stdbool.h>

#include "tools/writer/input/target.h"
#include "tools/writer/output/rows/rows.h"

struct pauses {
	struct clock_instant *edges; /* edges: a pause begins, ends, begins, ... */
	uint32_t n_edges, capacity;
};

/* Does a pause last? */
static inline bool torsh_pauses_is_paused(const struct pauses *pauses)
{
	return (int)(pauses->n_edges & 1);
}

/*
 * Begin a pause now, or end the one that lasts. What a target allocates after this returned lies
 * after the edge.
 */
void torsh_pauses_toggle(struct pauses *pauses, struct target *const *targets, uint32_t n_targets);

/* Give a target that has just begun all edges so far. */
void torsh_pauses_publish(const struct pauses *pauses, struct target *target);

/*
 * Put the edges into the session's row, in arrays that torsh_pauses_release frees; zero_ns is the
 * zero of its times.
 */
void torsh_pauses_put(const struct pauses *pauses, uint64_t zero_ns, struct rows_session *session);

/* Free the arrays of a row. */
void torsh_pauses_release(struct rows_session *session);

/* Free the edges. */
void torsh_pauses_destroy(struct pauses *pauses);

#endif
