/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Time on the screen: steps, phases, and the operators with most time. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_TIME_H
#define TORSH_REPORT_SCREEN_SCREEN_TIME_H

#include "tools/ops/operators.h"
#include "tools/ops/step_durations.h"
#include "tools/report/overview.h"

struct screen_time {
	struct step_durations steps;
	uint64_t phase_ns[N_PHASES], other_ns, step_ns; /* of the shown steps, on the host */
	struct operators operators; /* sorted, most time first */
};

/* Read the timeline once more. Dies if the recording cannot be read. */
void torsh_screen_time_collect(struct screen_time *time, const struct overview *overview,
			       const struct prepass *prepass);

/* Free what was collected. */
void torsh_screen_time_free(struct screen_time *time);

/* Print the section; nothing without steps and operators. */
void torsh_screen_time(const struct screen_time *time, const struct overview *overview,
		       const struct prepass *prepass);

#endif
