/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stamps that are not just a reading of the counter: the counter isn't used, was set back, or is
 * below the producer's last stamp.
 */
#include <stdbool.h>
#include <time.h>

#include "agent/producer/counter.h"
#include "agent/producer/producer.h"

bool torsh_producer_clock_is_monotonic;

static uint64_t monotonic_stamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) >> CHANNEL_STAMP_SHIFT;
}

uint64_t torsh_producer_slow_stamp(struct producer *producer)
{
	uint64_t stamp;

	if (torsh_producer_clock_is_monotonic)
		return monotonic_stamp();
	stamp = torsh_stamp_lifted_ticks(producer) >> CHANNEL_STAMP_SHIFT;
	return stamp < producer->codec.stamp ? torsh_producer_stamp_went_back(producer) : stamp;
}

/*
 * Either the counter was set back, and stamps are lifted; or the counters of two CPUs differ
 * because the machine doesn't synchronise them. Then the producer's time stands still, and that is
 * counted.
 */
uint64_t torsh_producer_stamp_went_back(struct producer *producer)
{
	uint64_t stamp;

	stamp = torsh_stamp_retake(producer) >> CHANNEL_STAMP_SHIFT;
	if (stamp >= producer->codec.stamp)
		return stamp;
	torsh_count(COUNTER_clock_went_back);
	return producer->codec.stamp;
}
