/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long the steps of a training took: the figures that all reports show. */
#ifndef TORSH_OPS_STEP_DURATIONS_H
#define TORSH_OPS_STEP_DURATIONS_H

#include "tools/timeline/prepass/prepass.h"

#define STEPS_SLOW_MEDIANS 2u /* what of the first steps takes longer is a warm-up */

/* Of the steps of all processes that have them by the same rule; times are 0 without steps. */
struct step_durations {
	enum step_rule rule;
	size_t n;
	uint64_t median_ns, p90_ns, p99_ns, longest_ns;
	uint64_t longest_number; /* of the first step that took longest */
	/* the most of any process: first steps that took STEPS_SLOW_MEDIANS medians or more */
	size_t n_slow_first;
};

/* Add up the steps that the pre-pass has by its best rule. */
struct step_durations torsh_step_durations_find(const struct prepass *prepass);

#endif
