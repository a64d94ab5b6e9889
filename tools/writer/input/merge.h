/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Folds the events of all threads of a process in the order of their stamps, as far as order.h allows. With one
 * thread that is one comparison an event.
 */
#ifndef TORSH_WRITER_MERGE_H
#define TORSH_WRITER_MERGE_H

#include "tools/writer/fold/process_state.h"

/*
 * Fold at most about `budget` events of the intakes, none above limit: the bound of threads that are not there yet, or
 * ORDER_NO_BOUND. Returns how many were folded; less than the budget says that order, or the end, stopped it.
 */
uint64_t torsh_merge_fold(struct tally *tally, struct intake *const *intakes, uint32_t n_intakes, uint64_t limit,
			  uint64_t budget);

#endif
