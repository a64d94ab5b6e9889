/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps by repeats: each repetition of a sequence of operators, from its first one to its last. */
#ifndef TORSH_TIMELINE_STEPS_PERIOD_STEPS_H
#define TORSH_TIMELINE_STEPS_PERIOD_STEPS_H

#include "tools/timeline/steps.h"
#include "tools/timeline/steps/op_sequence.h"

/* Without an operator for so long a burst may end ... */
#define BURST_PAUSE_NS UINT64_C(10000000)
/* ... if most pauses between steps are shorter: a quarter of them by this factor. */
#define BURST_QUARTILES 10u

/* Make the steps of a process, with their kinds and bursts, and their certainty. */
void torsh_period_steps_make(const struct op_sequences *sequences,
			     const struct recorded_process *process, struct steps *steps);

/*
 * Returns the certainty of steps that something else bounds: the share of those, without the first
 * and the last one, that have as many outermost operators as their median, up to a twentieth. 1 if
 * there are none.
 */
double torsh_period_steps_regularity(const struct op_sequences *sequences,
				     const struct steps *steps);

#endif
