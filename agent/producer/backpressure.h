/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The backpressure timeout: how long a producer with a full ring waits for the writer. It waits for
 * a slow writer (a busy machine, a long pass), and gives up on one that is stopped, blocked, or
 * makes no progress.
 */
#ifndef TORSH_AGENT_PRODUCER_BACKPRESSURE_H
#define TORSH_AGENT_PRODUCER_BACKPRESSURE_H

#include <stdbool.h>
#include <stdint.h>

/* Evidence that the writer runs, from the channel's header. */
struct writer_progress {
	uint32_t heartbeat; /* of the channel's header */
	uint64_t cpu_ns; /* writer_cpu_ns of the channel's header */
};

struct backpressure {
	struct writer_progress last;
	uint64_t first_cpu_ns; /* the first value that could be read */
	uint64_t checked_ns;
	uint64_t waited_ns, silent_ns; /* in total, and since the last sign of life */
};

/* Start a wait at now_ns of a monotonic clock. */
void torsh_backpressure_begin(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress);

/*
 * Whether to go on waiting. Called about every BACKPRESSURE_STEP_NS. A longer gap counts only in
 * part: the producer did not run then, and perhaps the writer neither.
 */
bool torsh_backpressure_lasts(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress);

#define BACKPRESSURE_STEP_NS UINT64_C(50000000)

#endif
