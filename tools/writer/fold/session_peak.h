/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session-wide peak: updates session_heap.h as processes begin and end. Owned by the drain
 * thread.
 */
#ifndef TORSH_WRITER_FOLD_SESSION_PEAK_H
#define TORSH_WRITER_FOLD_SESSION_PEAK_H

#include "tools/writer/fold/session_heap.h"
#include "tools/writer/output/rows/rows.h"

struct session_peak {
	struct session_heap session_heap; /* of the processes that use the first process's clock */
	struct clock_conversion clock;
	uint32_t written; /* number of the peak in the last checkpoint */
	struct rows_extents extents; /* of its rows */
};

/* Free the sum. */
void torsh_session_peak_destroy(struct session_peak *session_peak);

/*
 * A target begins; targets are the ones that exist already. The sum begins with the second process.
 */
void torsh_session_peak_join(struct session_peak *session_peak, struct target *target,
			     struct target *const *targets, uint32_t n_targets);

/*
 * Remove the target's memory at its last event, or, if that is not an exit, when the writer saw its
 * end.
 */
void torsh_session_peak_leave(struct target *target);

/* Apply the changes that are final; the number of waiting changes is bounded. */
void torsh_session_peak_settle(struct session_peak *session_peak, struct target *const *targets,
			       uint32_t n_targets);

/* Write the current peak if it is newer than the written one. */
void torsh_session_peak_checkpoint(struct session_peak *session_peak, struct recording_file *file);

/* Write the final peak. */
void torsh_session_peak_end(struct session_peak *session_peak, struct recording_file *file);

#endif
