/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long a producer whose ring is full waits for the writer. One that is slow, because the
 * machine is busy or a pass takes long, is waited for; one that is stopped, blocked, or turns in
 * circles is not.
 */
#ifndef TORSH_AGENT_PRODUCER_BACKPRESSURE_H
#define TORSH_AGENT_PRODUCER_BACKPRESSURE_H

#include <stdbool.h>
#include <stdint.h>

/* What shows that the writer is at work. */
struct writer_progress {
	uint32_t heartbeat; /* of the channel's header */
	uint64_t cpu_ns; /* writer_cpu_ns of the channel's header */
};

struct backpressure {
	struct writer_progress last;
	uint64_t first_cpu_ns; /* the first that could be read */
	uint64_t checked_ns;
	uint64_t waited_ns, silent_ns; /* in all, and without a sign of life */
};

/* now_ns: of a clock that only goes forward. */
void torsh_backpressure_begin(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress);

/*
 * Is it to be waited on? To be asked about every BACKPRESSURE_STEP_NS: of what is much longer than
 * that only a part counts, as the producer itself did not run then, and the writer neither perhaps.
 */
bool torsh_backpressure_lasts(struct backpressure *backpressure, uint64_t now_ns,
			      struct writer_progress progress);

#define BACKPRESSURE_STEP_NS UINT64_C(50000000)

#endif
