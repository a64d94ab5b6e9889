/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps that a schedule counted in the process (agent/producer/schedule.h). */
#ifndef TORSH_TIMELINE_STEPS_SCHEDULED_STEPS_H
#define TORSH_TIMELINE_STEPS_SCHEDULED_STEPS_H

#include "tools/timeline/steps.h"
#include "tools/timeline/steps/step_moments.h"

/* Zeros are none; free the items of moments. */
struct scheduled_steps {
	struct moments moments;
	uint32_t told_by; /* enum step_source of the moments */
};

/* Add a step. A better source of steps starts over, as in agent/producer/schedule.c. */
void torsh_scheduled_steps_add(struct scheduled_steps *scheduled, uint64_t at_ns,
			       const struct event_schedule_step *step);

/*
 * Make steps of the moments, of which there is one at least. start_ns: of the process's first
 * operator, 0 without any; profiler: scopes of torch.profiler.
 */
void torsh_scheduled_steps_make(const struct scheduled_steps *scheduled, uint64_t start_ns,
				uint64_t last_ns, const struct moments *profiler,
				struct steps *steps);

#endif
