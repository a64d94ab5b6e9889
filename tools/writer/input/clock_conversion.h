/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Converts stamps to nanoseconds. The writer reads the targets' counter together with
 * CLOCK_MONOTONIC: the rate is the quotient over the whole time since it began, so its accuracy
 * increases with time.
 *
 * The time of a stamp depends on the stamp alone, not on when it is converted: it is a continuous,
 * rising function of straight pieces. A piece is never changed from its begin to the last reading.
 * Where a reading differs from the function, two pieces are added: one that approaches the reading,
 * and one at the measured rate after it. So events and blocks compare exactly.
 *
 * CLOCK_MONOTONIC stops while the machine is suspended, and so does the session's clock. The
 * counter may continue meanwhile, be set back, or jump to any value when a virtual machine
 * migrates. If it is set back, a lift is added here, and by each target for itself
 * (agent/producer/stamp.h). If it jumps forward, stamps follow the counter, and the jump is
 * subtracted from the time.
 */
#ifndef TORSH_WRITER_INPUT_CLOCK_CONVERSION_H
#define TORSH_WRITER_INPUT_CLOCK_CONVERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/channel.h"

/* The current time in ticks of CHANNEL_CLOCK_TSC. The only CPU-specific code of the writer. */
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

/* A jump forward: ticks at `from` or later include the jump; n is the sum of all jumps so far. */
struct clock_gap {
	uint64_t from, n;
};

/* A piece of the conversion: from these ticks on, without jumps, up to the next piece. */
struct clock_piece {
	uint64_t ticks, ns;
	double ns_per_tick;
};

/* All ticks include the lift. */
struct clock_rate {
	uint64_t first_ticks, first_ns; /* the ticks include jumps since then */
	uint64_t last_ticks, last_ns; /* of the last reading */
	uint64_t last_suspended_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
	double ns_per_tick;
	bool is_measured;
	uint64_t lift;
	struct clock_gap *gaps; /* in order */
	uint32_t n_gaps;
	size_t gap_capacity;
	struct clock_piece *pieces; /* in order; the first also holds for earlier ticks */
	uint32_t n_pieces;
	size_t piece_capacity;
};

/* The result of a measurement. */
enum clock_jump { CLOCK_JUMP_NONE, CLOCK_JUMP_BACK, CLOCK_JUMP_AHEAD };

struct clock_measurement {
	enum clock_jump jump;
	uint64_t suspended_ns; /* time that the machine was suspended since the last reading */
};

/*
 * Take the first reading; the rate is an estimate until torsh_clock_rate_measure has enough time
 * between readings.
 */
void torsh_clock_rate_start(struct clock_rate *rate);

/* Free the gaps and the pieces. */
void torsh_clock_rate_destroy(struct clock_rate *rate);

/*
 * Conversions may begin: the first piece is final. Waits until the rate is measured over some
 * hundred microseconds. Does nothing if it was called before.
 */
void torsh_clock_rate_fix(struct clock_rate *rate);

/* Convert ticks to nanoseconds on CLOCK_MONOTONIC. Call after torsh_clock_rate_fix. */
uint64_t torsh_clock_rate_ns(const struct clock_rate *rate, uint64_t ticks);

/* Measure the rate again; the result shows whether the counter jumped. */
struct clock_measurement torsh_clock_rate_measure(struct clock_rate *rate);

/*
 * Returns the last reading for a target that began when the lift was `base`; nothing while the rate
 * is an estimate.
 */
void torsh_clock_rate_publish(const struct clock_rate *rate, uint64_t base,
			      struct clock_reference *reference);

/* The clock of one target. */
struct clock_conversion {
	const struct clock_rate *rate; /* NULL: ticks are nanoseconds */
	uint64_t start_ticks;
	uint64_t start_ns; /* of start_ticks, on the session's clock */
	uint64_t start_monotonic_ns; /* of start_ticks */
	uint64_t start_rate_ns; /* of start_ticks, by torsh_clock_rate_ns */
	uint64_t base; /* the rate's lift when the target began, with a lift of 0 */
	/* the target's own lift since then, in the target's memory; NULL: unknown */
	const _Atomic uint64_t *lift;
};

/* Returns the target's own lift, or the lower bound of the lift that its next stamp will have. */
static inline uint64_t torsh_clock_lift(const struct clock_conversion *clock)
{
	uint64_t own = clock->lift ? atomic_load_explicit(clock->lift, memory_order_relaxed) : 0;
	uint64_t least = clock->rate->lift - clock->base;

	return own > least ? own : least;
}

/* One instant on both clocks that targets may use. */
struct clock_instant {
	uint64_t ticks, ns;
};

/* Ordered after the calling thread's earlier stores: the first clock read waits for them. */
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

/* Convert a duration in nanoseconds to the target's stamps. */
static inline uint64_t torsh_clock_stamps_of_ns(const struct clock_conversion *clock, uint64_t ns)
{
	return (uint64_t)((double)ns / (clock->rate ? clock->rate->ns_per_tick : 1.0)) >>
	       CHANNEL_STAMP_SHIFT;
}

/*
 * Convert a stamp to the session's clock in nanoseconds; stamps before the target's start become
 * its start.
 */
static inline uint64_t torsh_clock_to_ns(const struct clock_conversion *clock, uint64_t stamp)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT, ns;

	if (stamp <= start)
		return clock->start_ns;
	if (!clock->rate)
		return clock->start_ns + ((stamp - start) << CHANNEL_STAMP_SHIFT);
	ns = torsh_clock_rate_ns(clock->rate, (stamp << CHANNEL_STAMP_SHIFT) + clock->base);
	return clock->start_ns + (ns > clock->start_rate_ns ? ns - clock->start_rate_ns : 0);
}

/*
 * Convert a CLOCK_MONOTONIC time to the session's clock; times before the target's start become its
 * start.
 */
static inline uint64_t torsh_clock_monotonic_to_ns(const struct clock_conversion *clock,
						   uint64_t monotonic_ns)
{
	return clock->start_ns + (monotonic_ns > clock->start_monotonic_ns
					  ? monotonic_ns - clock->start_monotonic_ns
					  : 0);
}

#endif
