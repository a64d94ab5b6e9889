/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The phase of a process over time: one at each moment, or none. If threads differ, the span that
 * began last decides.
 */
#ifndef TORSH_TIMELINE_PHASE_CLOCK_H
#define TORSH_TIMELINE_PHASE_CLOCK_H

#include "tools/timeline/steps.h"

struct phase_step {
	uint64_t phase_ns[N_PHASES];
	/* in no operator and no module; all phases and this add up to the step's duration */
	uint64_t other_ns;
};

/* Called for each piece of time that a step spends; phase N_PHASES: in none. */
struct phase_watch {
	void (*spend)(void *context, size_t phase, uint64_t from_ns, uint64_t to_ns);
	void *context;
};

struct phase_clock {
	const struct steps *steps;
	struct phase_step *spent; /* by step; owned by the caller */
	struct phase_watch watch; /* may be set after the start; zeroed: nobody */
	struct open_phase {
		uint64_t ordinal; /* of the span */
		enum span_phase phase;
	} * open; /* in the order of their begins */
	size_t n_open, n_room;
	size_t step; /* the first step that ends after now_ns */
	uint64_t now_ns;
};

/* Begin a clock. The arguments must outlive it; spent has a zeroed item for each step. */
void torsh_phase_clock_start(struct phase_clock *clock, const struct steps *steps,
			     struct phase_step *spent);

/* Pass begins in time order. Asynchronous spans and spans without a phase are ignored. */
void torsh_phase_clock_begin(struct phase_clock *clock, const struct span *span);

/* Pass ends in time order. */
void torsh_phase_clock_end(struct phase_clock *clock, const struct span *span);

/* Advance to the end of all steps. */
void torsh_phase_clock_stop(struct phase_clock *clock);

#endif
