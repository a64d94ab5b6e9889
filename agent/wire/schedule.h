/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * In which steps of a training operators are recorded, with torch.profiler.schedule's rules. The
 * target and the readers decide by the same function.
 */
#ifndef TORSH_AGENT_WIRE_SCHEDULE_H
#define TORSH_AGENT_WIRE_SCHEDULE_H

#include <stdint.h>

/* Numbers of steps. active is at least 1, or 0 without a schedule. repeat 0: without end. */
struct schedule {
	uint32_t skip, wait, warmup, active, repeat;
};

enum schedule_action {
	SCHEDULE_REST, /* only what must be exact at all times is recorded */
	SCHEDULE_WARM_UP, /* recorded as when active, but reports leave it out */
	SCHEDULE_ACTIVE,
};

/* The action in a step; the first step is 0. */
static inline enum schedule_action torsh_schedule_action(const struct schedule *schedule,
							 uint64_t step)
{
	uint64_t n_cycle = (uint64_t)schedule->wait + schedule->warmup + schedule->active;

	if (step < schedule->skip)
		return SCHEDULE_REST;
	step -= schedule->skip;
	if (schedule->repeat && step / n_cycle >= schedule->repeat)
		return SCHEDULE_REST;
	step %= n_cycle;
	if (step < schedule->wait)
		return SCHEDULE_REST;
	return step < (uint64_t)schedule->wait + schedule->warmup ? SCHEDULE_WARM_UP
								  : SCHEDULE_ACTIVE;
}

#endif
