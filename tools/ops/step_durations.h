/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The durations of a training's steps: the figures that all reports show. */
#ifndef TORSH_OPS_STEP_DURATIONS_H
#define TORSH_OPS_STEP_DURATIONS_H

#include "tools/timeline/prepass/prepass.h"

#define STEPS_SLOW_MEDIANS 2u /* first steps that take at least this many medians are a warm-up */

/* Over the steps of all processes that have them by the same rule; times are 0 without steps. */
struct step_durations {
	enum step_rule rule;
	size_t n;
	uint64_t median_ns, p90_ns, p99_ns, longest_ns;
	uint64_t longest_number; /* number of the first of the longest steps */
	/* maximum over the processes: first steps of STEPS_SLOW_MEDIANS medians or more */
	size_t n_slow_first;
};

/* Summarise the steps that the pre-pass has by its best rule. */
struct step_durations torsh_step_durations_find(const struct prepass *prepass);

#endif
