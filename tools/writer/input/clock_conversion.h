/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From stamps to nanoseconds. The writer reads the same counter as its targets together with
 * CLOCK_MONOTONIC: the rate is the quotient over all the time since it began, so that it grows more
 * exact all the while. What is written once and for all (a recorded event) has the rate of that
 * moment.
 *
 * CLOCK_MONOTONIC stands still while the machine is suspended, and so does the session's clock. The
 * counter may run on meanwhile, or be set back, and to anywhere when a virtual machine moves. Set
 * back: it is lifted here, and by each target for itself (agent/producer/stamp.h). Forward: stamps
 * go on as the counter does, and what it jumped over is left out of the time.
 */
#ifndef TORSH_WRITER_INPUT_CLOCK_CONVERSION_H
#define TORSH_WRITER_INPUT_CLOCK_CONVERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/channel.h"

/* Now, in ticks of CHANNEL_CLOCK_TSC. The only CPU-specific code of the writer. */
static inline uint64_t torsh_clock_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t torsh_clock_monotonic_ns(void);

/*
 * A jump forward: ticks at `from` or later are late by what was jumped over; n is the sum so far.
 */
struct clock_gap {
	uint64_t from, n;
};

/* All ticks with the lift. */
struct clock_rate {
	uint64_t first_ticks, first_ns; /* the ticks with what was jumped over since */
	uint64_t last_ticks, last_ns; /* of the last reading */
	uint64_t last_suspended_ns; /* what CLOCK_BOOTTIME was ahead by */
	double ns_per_tick;
	bool is_measured;
	uint64_t lift;
	struct clock_gap *gaps; /* in order */
	uint32_t n_gaps, gap_capacity;
};

/* What a measurement found. */
enum clock_jump { CLOCK_JUMP_NONE, CLOCK_JUMP_BACK, CLOCK_JUMP_AHEAD };

struct clock_measurement {
	enum clock_jump jump;
	uint64_t suspended_ns; /* the machine was, since the reading before */
};

/*
 * Take the first reading; the rate is a guess until torsh_clock_rate_measure had some time between.
 */
void torsh_clock_rate_start(struct clock_rate *rate);

/* Free what the rate holds. */
void torsh_clock_rate_destroy(struct clock_rate *rate);

/* Measure the rate again; the result says whether the counter has jumped. */
struct clock_measurement torsh_clock_rate_measure(struct clock_rate *rate);

/*
 * The last reading for a target whose ticks began when the lift was `base`; nothing while the rate
 * is a guess.
 */
void torsh_clock_rate_publish(const struct clock_rate *rate, uint64_t base,
			      struct clock_reference *reference);

/* The clock of one target. */
struct clock_conversion {
	const struct clock_rate *rate; /* NULL: ticks are nanoseconds */
	uint64_t start_ticks;
	uint64_t start_ns; /* of start_ticks, on the session's clock */
	uint64_t start_monotonic_ns; /* of start_ticks */
	uint64_t base; /* the rate's lift at that time: the target began without one */
	/* its own since then, another process's memory; NULL: not known */
	const _Atomic uint64_t *lift;
};

/* The target's own lift, or what it will be at least as soon as it stamps again. */
static inline uint64_t torsh_clock_lift(const struct clock_conversion *clock)
{
	uint64_t own = clock->lift ? atomic_load_explicit(clock->lift, memory_order_relaxed) : 0;
	uint64_t least = clock->rate->lift - clock->base;

	return own > least ? own : least;
}

/* One instant by both clocks that targets may have. */
struct clock_instant {
	uint64_t ticks, ns;
};

/* Not before what the calling thread did before: the clock that is read first waits for that. */
static inline struct clock_instant torsh_clock_instant(void)
{
	struct clock_instant moment = {.ns = torsh_clock_monotonic_ns()};

	moment.ticks = torsh_clock_ticks();
	return moment;
}

/* The instant as a stamp of the target. */
static inline uint64_t torsh_clock_instant_to_stamp(const struct clock_conversion *clock,
						    const struct clock_instant *moment)
{
	return (clock->rate ? moment->ticks + torsh_clock_lift(clock) : moment->ns) >>
	       CHANNEL_STAMP_SHIFT;
}

/* Now as a stamp of the target. */
static inline uint64_t torsh_clock_now(const struct clock_conversion *clock)
{
	return (clock->rate ? torsh_clock_ticks() + torsh_clock_lift(clock)
			    : torsh_clock_monotonic_ns()) >>
	       CHANNEL_STAMP_SHIFT;
}

/* The number of the target's stamps in this many nanoseconds. */
static inline uint64_t torsh_clock_stamps_of_ns(const struct clock_conversion *clock, uint64_t ns)
{
	return (uint64_t)((double)ns / (clock->rate ? clock->rate->ns_per_tick : 1.0)) >>
	       CHANNEL_STAMP_SHIFT;
}

/* What the counter jumped over until that tick of the rate's. */
uint64_t torsh_clock_jumped_until(const struct clock_rate *rate, uint64_t ticks);

/* What the counter jumped over between the target's start and this tick of it. */
static inline uint64_t torsh_clock_jumped(const struct clock_conversion *clock, uint64_t ticks)
{
	if (!clock->rate->n_gaps || ticks <= clock->start_ticks)
		return 0;
	return torsh_clock_jumped_until(clock->rate, ticks + clock->base) -
	       torsh_clock_jumped_until(clock->rate, clock->start_ticks + clock->base);
}

/*
 * A stamp on the session's clock of nanoseconds; one from before the target's start counts
 * as its start.
 */
static inline uint64_t torsh_clock_to_ns(const struct clock_conversion *clock, uint64_t stamp)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;
	uint64_t ticks = stamp > start ? (stamp - start) << CHANNEL_STAMP_SHIFT : 0;

	if (!clock->rate)
		return clock->start_ns + ticks;
	ticks -= torsh_clock_jumped(clock, stamp << CHANNEL_STAMP_SHIFT);
	return clock->start_ns + (uint64_t)((double)ticks * clock->rate->ns_per_tick);
}

/*
 * A moment of CLOCK_MONOTONIC on the session's clock; one from before the target's start
 * counts as its start.
 */
static inline uint64_t torsh_clock_monotonic_to_ns(const struct clock_conversion *clock,
						   uint64_t monotonic_ns)
{
	return clock->start_ns + (monotonic_ns > clock->start_monotonic_ns
					  ? monotonic_ns - clock->start_monotonic_ns
					  : 0);
}

#endif
