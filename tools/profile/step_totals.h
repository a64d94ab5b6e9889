/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What happened in each step of a process: time by phase, FLOPs, memory of tensors. */
#ifndef TORSH_PROFILE_STEP_TOTALS_H
#define TORSH_PROFILE_STEP_TOTALS_H

#include "tools/profile/operators.h"
#include "tools/profile/phase_clock.h"

struct step_total {
	uint64_t calls; /* of operators */
	uint64_t flops, flops_all;
	struct phase_step spent;
	uint64_t peak_bytes; /* most that tensors of all devices held at once */
};

/* One for each step of the process, the caller's to free. */
struct step_total *torsh_step_totals(const struct profile *profile, struct profile_process *process,
				     const struct survey *survey);

#endif
