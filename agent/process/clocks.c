/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/clocks.h"

#include <time.h>

#include "agent/producer/producer.h"

#define N_TRIES 3

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void torsh_clocks_read(struct channel_header *header)
{
	uint64_t best_ns = UINT64_MAX;

	/* Take the fastest of several tries: the thread may be preempted in any of them. */
	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before_ns = clock_ns(CLOCK_MONOTONIC), ticks = torsh_cpu_ticks_ordered();
		uint64_t realtime_ns = clock_ns(CLOCK_REALTIME),
			 took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		header->start_monotonic_ns = before_ns + took_ns / 2;
		header->start_realtime_ns = realtime_ns;
		header->start_ticks =
			torsh_producer_clock_is_monotonic ? header->start_monotonic_ns : ticks;
	}
}
