/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What all processes of a session hold together: session_heap.h, as processes come and go. The drain thread's. */
#ifndef TORSH_WRITER_TOGETHER_H
#define TORSH_WRITER_TOGETHER_H

#include "tools/writer/fold/session_heap.h"
#include "tools/writer/output/rows/rows.h"

struct together {
	struct joint joint; /* of the processes whose clock is the first one's */
	struct ticks_clock clock;
	uint32_t written; /* number of the peak that a checkpoint has */
	struct rows_places places; /* of its rows */
};

void torsh_together_destroy(struct together *together);

/* A target begins; targets are those that are there already. From the second process on there is a sum to be kept. */
void torsh_together_join(struct together *together, struct target *target, struct target *const *targets,
			 uint32_t n_targets);

/* What it had goes with its last event, or where it could not say that it ends, when we learnt of it. */
void torsh_together_leave(struct target *target);

/* Put in order what no process can add to any more; what waits is bounded. */
void torsh_together_settle(struct together *together, struct target *const *targets, uint32_t n_targets);

/* Write the peak so far where it is another than the one that was written. */
void torsh_together_checkpoint(struct together *together, struct recording_file *file);

/* Write the peak for good. */
void torsh_together_end(struct together *together, struct recording_file *file);

#endif
