/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counts of errors and rare events in the agent, kept in the channel's header so that the report
 * has them however the process ends. Any thread, any time. Before the channel exists, counts go to
 * a spare array that is added when it is created.
 */
#ifndef TORSH_AGENT_PRODUCER_COUNTER_H
#define TORSH_AGENT_PRODUCER_COUNTER_H

#include <stdatomic.h>

#include "agent/wire/channel.h"

extern _Atomic uint64_t *torsh_counters, torsh_spare_counters[];

static inline void torsh_count_many(enum channel_counter counter, uint64_t n)
{
	atomic_fetch_add_explicit(&torsh_counters[counter], n, memory_order_relaxed);
}

static inline void torsh_count(enum channel_counter counter)
{
	torsh_count_many(counter, 1);
}

#endif
