/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the machine's memory controllers moved while a process was in each phase of its steps. */
#ifndef TORSH_OPS_PHASE_TRAFFIC_H
#define TORSH_OPS_PHASE_TRAFFIC_H

#include "tools/timeline/counts/memory_traffic.h"
#include "tools/timeline/phase_clock.h"

struct phase_traffic {
	const struct recorded_memory_traffic *recorded;
	size_t phase; /* that lasts, since from_ns until to_ns at least; N_PHASES: other */
	uint64_t from_ns, to_ns;
	struct memory_traffic sums[N_PHASES + 1];
};

/* Returns a watch of a clock, which adds its phases. The arguments must outlive it. */
struct phase_watch torsh_phase_traffic_watch(struct phase_traffic *traffic,
					     const struct recording *recording);

/* Add the last phase. */
void torsh_phase_traffic_end(struct phase_traffic *traffic);

#endif
