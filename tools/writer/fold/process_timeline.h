/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Events of the timeline: operators, ranges, tensors, launches, device activities, device memory.
 * Their labels and times are converted to the recording's, the totals and steps of the process are
 * updated, and each event becomes a row. Called by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PROCESS_TIMELINE_H
#define TORSH_WRITER_FOLD_PROCESS_TIMELINE_H

#include "tools/writer/fold/process_state.h"

/* Keep the ring consumer's event number i, which is of the timeline, at that stamp. */
void torsh_process_timeline_keep(struct process_state *state, struct ring_consumer *consumer,
				 uint32_t i, uint64_t stamp);

/*
 * The timeline so far is about to be written: add the heap's marks since the last device memory
 * change.
 */
void torsh_process_timeline_mark_heap(struct process_state *state);

#endif
