/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stamps that are not just a reading of the counter: it isn't used, was set back, or stands below
 * the flow's last stamp.
 */
#include <time.h>

#include "agent/producer/counter.h"
#include "agent/producer/flow.h"

int torsh_flow_clock_is_monotonic;

static uint64_t monotonic_stamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) >> CHANNEL_STAMP_SHIFT;
}

uint64_t torsh_flow_slow_stamp(struct flow *flow)
{
	uint64_t stamp;

	if (torsh_flow_clock_is_monotonic)
		return monotonic_stamp();
	stamp = torsh_stamp_lifted_ticks(flow) >> CHANNEL_STAMP_SHIFT;
	return stamp < flow->codec.stamp ? torsh_flow_stamp_went_back(flow) : stamp;
}

/*
 * The counter was set back: stamps are lifted. Or counters of two CPUs differ, where the machine
 * doesn't keep them together: time stands still, and it is said.
 */
uint64_t torsh_flow_stamp_went_back(struct flow *flow)
{
	uint64_t stamp;

	stamp = torsh_stamp_retake(flow) >> CHANNEL_STAMP_SHIFT;
	if (stamp >= flow->codec.stamp)
		return stamp;
	torsh_count(COUNTER_clock_went_back);
	return flow->codec.stamp;
}
