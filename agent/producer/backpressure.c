/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/backpressure.h"

/* A writer that is stopped, or waits for a disk that doesn't answer. */
#define SILENT_AT_MOST_NS UINT64_C(2000000000)
/* Of the writer's own CPU time, for which it took nothing of a full ring: it turns in circles. */
#define CPU_AT_MOST_NS UINT64_C(30000000000)
/* Without a CPU time yet: it has just begun. */
#define BLIND_AT_MOST_NS UINT64_C(30000000000)
/* Whatever it seems to do. */
#define WAIT_AT_MOST_NS UINT64_C(600000000000)

void torsh_backpressure_begin(struct backpressure *backpressure, uint64_t now_ns,
			      struct signs_of_life signs)
{
	*backpressure = (struct backpressure){
		.last = signs, .first_cpu_ns = signs.cpu_ns, .asked_ns = now_ns};
}

int torsh_backpressure_lasts(struct backpressure *backpressure, uint64_t now_ns,
			     struct signs_of_life signs)
{
	uint64_t passed_ns = now_ns - backpressure->asked_ns;
	int is_alive = signs.heartbeat != backpressure->last.heartbeat ||
		       signs.cpu_ns != backpressure->last.cpu_ns;

	if (passed_ns > 2 * BACKPRESSURE_STEP_NS)
		passed_ns = 2 * BACKPRESSURE_STEP_NS;
	backpressure->asked_ns = now_ns;
	backpressure->last = signs;
	backpressure->waited_ns += passed_ns;
	backpressure->silent_ns = is_alive ? 0 : backpressure->silent_ns + passed_ns;
	if (backpressure->silent_ns >= SILENT_AT_MOST_NS ||
	    backpressure->waited_ns >= WAIT_AT_MOST_NS)
		return 0;
	if (!backpressure->first_cpu_ns)
		backpressure->first_cpu_ns = signs.cpu_ns;
	if (!signs.cpu_ns)
		return backpressure->waited_ns < BLIND_AT_MOST_NS;
	return signs.cpu_ns - backpressure->first_cpu_ns < CPU_AT_MOST_NS;
}
