/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The session-wide peak: session_heap.h, as processes come and go. Owned by the drain thread. */
#ifndef TORSH_WRITER_FOLD_SESSION_PEAK_H
#define TORSH_WRITER_FOLD_SESSION_PEAK_H

#include "tools/writer/fold/session_heap.h"
#include "tools/writer/output/rows/rows.h"

struct session_peak {
	struct session_heap session_heap; /* of the processes whose clock is the first one's */
	struct clock_conversion clock;
	uint32_t written; /* number of the peak that a checkpoint has */
	struct rows_extents extents; /* of its rows */
};

/* Free the sum. */
void torsh_session_peak_destroy(struct session_peak *session_peak);

/*
 * A target begins; targets are those that are there already. From the second process on there is a
 * sum to be kept.
 */
void torsh_session_peak_join(struct session_peak *session_peak, struct target *target,
			     struct target *const *targets, uint32_t n_targets);

/*
 * What the target had ends at its last event, or, where that is no exit, when the writer saw its
 * end.
 */
void torsh_session_peak_leave(struct target *target);

/* Take the changes that no process can add older ones to; how many wait is bounded. */
void torsh_session_peak_settle(struct session_peak *session_peak, struct target *const *targets,
			       uint32_t n_targets);

/* Write the peak so far where it is another than the one that was written. */
void torsh_session_peak_checkpoint(struct session_peak *session_peak, struct recording_file *file);

/* Write the peak for good. */
void torsh_session_peak_end(struct session_peak *session_peak, struct recording_file *file);

#endif
