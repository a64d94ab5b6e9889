/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Folds the events of all threads of a process in the order of their stamps, as far as order.h
 * allows. With one thread that is one comparison an event.
 */
#ifndef TORSH_WRITER_INPUT_MERGE_H
#define TORSH_WRITER_INPUT_MERGE_H

#include "tools/writer/fold/process_state.h"

/*
 * Fold at most about `budget` events of the ring consumers, none above limit: the bound of threads
 * that are not there yet, or ORDER_NO_BOUND. Returns how many were folded; where these are less
 * than the budget, order or the end stopped it.
 */
uint64_t torsh_merge_fold(struct process_state *state, struct ring_consumer *const *consumers,
			  uint32_t n_consumers, uint64_t limit, uint64_t budget);

#endif
