/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The phases of the steps of a process: by one clock, or, where threads work on different steps at
 * the same time, by one of each thread. What is left of a step's time, while it waits for its turn
 * on a thread, is in no phase.
 */
#ifndef TORSH_TIMELINE_PHASE_LANES_H
#define TORSH_TIMELINE_PHASE_LANES_H

#include "tools/timeline/phase_clock.h"

/* A thread's slices, as steps of its clock. */
struct phase_lane {
	uint32_t thread;
	const struct step_slice *slices;
	struct steps steps;
	struct phase_step *spent;
	struct phase_clock clock;
};

struct phase_lanes {
	const struct steps *steps;
	struct phase_step *spent; /* by step; owned by the caller */
	struct phase_clock whole; /* without slices */
	struct phase_lane *lanes; /* by thread */
	size_t n;
};

/* Begin. The arguments must outlive it; spent has a zeroed item for each step. */
void torsh_phase_lanes_start(struct phase_lanes *lanes, const struct steps *steps,
			     struct phase_step *spent);

/* Pass begins in time order. */
void torsh_phase_lanes_begin(struct phase_lanes *lanes, const struct span *span);

/* Pass ends in time order. */
void torsh_phase_lanes_end(struct phase_lanes *lanes, const struct span *span);

/* Advance to the end of all steps, and free the lanes. */
void torsh_phase_lanes_stop(struct phase_lanes *lanes);

#endif
