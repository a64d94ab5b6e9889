/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Folds the events of all threads of a process in stamp order, as far as order.h allows. With one
 * thread that costs one comparison per event.
 */
#ifndef TORSH_WRITER_INPUT_MERGE_H
#define TORSH_WRITER_INPUT_MERGE_H

#include "tools/writer/fold/process_state.h"

/*
 * Fold at most about `budget` events of the ring consumers, none above limit: the bound of threads
 * that do not exist yet, or ORDER_NO_BOUND. Returns the number of folded events; fewer than the
 * budget means that order or the end stopped it.
 */
uint64_t torsh_merge_fold(struct process_state *state, struct ring_consumer *const *consumers,
			  uint32_t n_consumers, uint64_t limit, uint64_t budget);

#endif
