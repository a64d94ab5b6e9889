/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What phase a process is in: at each moment one, or none. Where threads are in several, that of
 * the span that began last.
 */
#ifndef TORSH_TIMELINE_PHASE_CLOCK_H
#define TORSH_TIMELINE_PHASE_CLOCK_H

#include "tools/timeline/steps.h"

struct phase_step {
	uint64_t phase_ns[N_PHASES];
	uint64_t other_ns; /* in no operator and no module: with these the step's duration */
};

struct phase_clock {
	const struct steps *steps;
	struct phase_step *spent; /* by step, the caller's */
	struct open_phase {
		uint64_t ordinal; /* of the span */
		enum span_phase phase;
	} * open; /* in the order of their beginnings */
	size_t n_open, n_room;
	size_t step; /* the first that has not ended by now_ns */
	uint64_t now_ns;
};

/* Both outlive the clock; spent has an item, all 0, for each step. */
void torsh_phase_clock_start(struct phase_clock *clock, const struct steps *steps,
			     struct phase_step *spent);

/*
 * In the order of time. A span that is asynchronous, or shows nothing of a phase, changes nothing.
 */
void torsh_phase_clock_begin(struct phase_clock *clock, const struct span *span);
void torsh_phase_clock_end(struct phase_clock *clock, const struct span *span);

/* Up to the end of all steps. */
void torsh_phase_clock_stop(struct phase_clock *clock);

#endif
