/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From stamps to nanoseconds. The writer reads the same counter as its targets, beside CLOCK_MONOTONIC: the rate is
 * the quotient over all the time since it began, so that it grows more exact all the while. What is written once and
 * for all (a recorded event) has the rate of that moment.
 */
#ifndef TORSH_WRITER_TICKS_H
#define TORSH_WRITER_TICKS_H

#include <stdint.h>

#include "agent/wire/channel.h"

/* Now, in the ticks of CHANNEL_CLOCK_TSC. The one thing here that is a CPU's own. */
static inline uint64_t torsh_ticks_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

uint64_t torsh_ticks_monotonic_ns(void);

struct ticks_rate {
	uint64_t first_ticks, first_ns;
	double ns_a_tick;
};

/* Take the first reading; the rate is a guess until torsh_ticks_measure had some time between. */
void torsh_ticks_start(struct ticks_rate *rate);

/* Take another reading. */
void torsh_ticks_measure(struct ticks_rate *rate);

/* The clock of one target. */
struct ticks_clock {
	const struct ticks_rate *rate; /* NULL: ticks are nanoseconds */
	uint64_t start_ticks;
	uint64_t start_ns; /* of start_ticks, on the session's axis */
	uint64_t start_monotonic_ns; /* of start_ticks */
};

/* One moment by both clocks that targets may have. */
struct ticks_moment {
	uint64_t ticks, ns;
};

/* Not before what the calling thread did before: the clock that is read first waits for that. */
static inline struct ticks_moment torsh_ticks_moment(void)
{
	struct ticks_moment moment = {.ns = torsh_ticks_monotonic_ns()};

	moment.ticks = torsh_ticks_counter();
	return moment;
}

/* The moment in the target's stamps. */
static inline uint64_t torsh_ticks_stamp(const struct ticks_clock *clock, const struct ticks_moment *moment)
{
	return (clock->rate ? moment->ticks : moment->ns) >> CHANNEL_STAMP_SHIFT;
}

/* Now in the target's stamps. */
static inline uint64_t torsh_ticks_now(const struct ticks_clock *clock)
{
	return (clock->rate ? torsh_ticks_counter() : torsh_ticks_monotonic_ns()) >> CHANNEL_STAMP_SHIFT;
}

/* This many nanoseconds in the target's stamps. */
static inline uint64_t torsh_ticks_of_ns(const struct ticks_clock *clock, uint64_t ns)
{
	return (uint64_t)((double)ns / (clock->rate ? clock->rate->ns_a_tick : 1.0)) >> CHANNEL_STAMP_SHIFT;
}

/* A stamp on the session's axis of nanoseconds; one from before the target's start counts as its start. */
static inline uint64_t torsh_ticks_to_ns(const struct ticks_clock *clock, uint64_t stamp)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;
	uint64_t ticks = stamp > start ? (stamp - start) << CHANNEL_STAMP_SHIFT : 0;

	if (!clock->rate)
		return clock->start_ns + ticks;
	return clock->start_ns + (uint64_t)((double)ticks * clock->rate->ns_a_tick);
}

/* A moment of CLOCK_MONOTONIC on the session's axis; one from before the target's start counts as its start. */
static inline uint64_t torsh_ticks_of_moment(const struct ticks_clock *clock, uint64_t monotonic_ns)
{
	return clock->start_ns + (monotonic_ns > clock->start_monotonic_ns ? monotonic_ns - clock->start_monotonic_ns : 0);
}

#endif
