/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/backpressure.h"

#include <stdbool.h>

/* without progress: the writer is stopped, or blocked on a disk */
#define SILENT_MAX_NS UINT64_C(2000000000)
/* the writer's CPU time while the ring stayed full: it makes no progress */
#define CPU_MAX_NS UINT64_C(30000000000)
/* no CPU time published yet: the writer is starting */
#define BLIND_MAX_NS UINT64_C(30000000000)
/* the overall limit */
#define WAIT_MAX_NS UINT64_C(600000000000)

void torsh_backpressure_begin(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress)
{
	*backpressure = (struct backpressure){
		.last = progress, .first_cpu_ns = progress.cpu_ns, .checked_ns = now_ns};
}

bool torsh_backpressure_lasts(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress)
{
	uint64_t passed_ns = now_ns - backpressure->checked_ns;
	bool is_alive = progress.heartbeat != backpressure->last.heartbeat ||
			progress.cpu_ns != backpressure->last.cpu_ns;

	if (passed_ns > 2 * BACKPRESSURE_STEP_NS)
		passed_ns = 2 * BACKPRESSURE_STEP_NS;
	backpressure->checked_ns = now_ns;
	backpressure->last = progress;
	backpressure->waited_ns += passed_ns;
	backpressure->silent_ns = is_alive ? 0 : backpressure->silent_ns + passed_ns;
	if (backpressure->silent_ns >= SILENT_MAX_NS || backpressure->waited_ns >= WAIT_MAX_NS)
		return false;
	if (!backpressure->first_cpu_ns)
		backpressure->first_cpu_ns = progress.cpu_ns;
	if (!progress.cpu_ns)
		return backpressure->waited_ns < BLIND_MAX_NS;
	return progress.cpu_ns - backpressure->first_cpu_ns < CPU_MAX_NS;
}
