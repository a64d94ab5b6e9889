/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How sure repetitions are (repeats.h). */
#ifndef TORSH_TIMELINE_STEPS_CERTAINTY_H
#define TORSH_TIMELINE_STEPS_CERTAINTY_H

#include "tools/timeline/steps/anchor.h"
#include "tools/timeline/steps/repeats.h"

/*
 * Set is_equal of each repetition, and the certainty. Returns whether the sequence is regular
 * enough for steps.
 */
bool torsh_certainty_find(struct repeats *repeats, const struct symbols *symbols,
			  bool is_of_modules);

#endif
