/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Repetitions in a sequence of operators: each is a step. The sequence is cut at its anchor
 * (anchor.h). The segment that covers most of it is the body; it is turned so that most
 * repetitions are whole, as the anchor need not come first. A repetition that differs from the body
 * is a step too if it calls the same module, or has half of the body's operators.
 *
 * Programs that repeat nothing have no steps: the body, or it and one other sequence, cover most of
 * what runs from the first step on.
 */
#ifndef TORSH_TIMELINE_STEPS_REPEATS_H
#define TORSH_TIMELINE_STEPS_REPEATS_H

#include "tools/timeline/steps/op_sequence.h"

/* One repetition. */
struct repeat {
	size_t first, end; /* places: the first one, and that behind the last one */
	uint64_t start_ns, end_ns;
	bool is_equal; /* another one has the same sequence */
};

struct repeats {
	struct repeat *items; /* in the order of time, without overlap */
	size_t n;
	/*
	 * From 0 to 1: the share of the operators' time, from the first step on, in steps that have
	 * the same sequence as another one. Without a module as the anchor, times the share of
	 * these steps before which the pause is longer than the median pause between their
	 * operators, and, of steps with fewer than 8 operators, times an eighth of their number.
	 */
	double certainty;
};

/* Find the repetitions; n is 0 if there are none. The caller frees items. */
void torsh_repeats_find(struct repeats *repeats, const struct op_place *places, size_t n);

#endif
