/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How far the clock of another host is ahead of this one's, over the time of a run, from exchanges
 * between the two, with a bound of the error.
 *
 * An exchange limits the offset at two moments, whatever the delays of the network, since these are
 * not negative: at `sent` to at most received - sent, at `returned` to at least replied - returned.
 * Within a segment the offset is a line; all lines within these limits are a convex polygon of
 * (offset, drift), as in Moon, Skelly and Towsley, "Estimation and Removal of Clock Skew from
 * Network Delay Measurements" (INFOCOM 1999). Its extent at a moment is the bound. The estimate is
 * a regression through the exchanges with the shortest round trips, kept within the polygon.
 *
 * A step of a clock, or another rate, leaves no line: a new segment begins.
 */
#ifndef TORSH_RANKS_CLOCKS_CLOCK_ESTIMATE_H
#define TORSH_RANKS_CLOCKS_CLOCK_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The clocks' relative rate is below this, or nothing is estimated. */
#define CLOCK_DRIFT_MAX 1e-3

/* One exchange: times of this host's clock (sent, returned) and of the other's, in ns. */
struct clock_exchange {
	int64_t sent_ns, received_ns, replied_ns, returned_ns;
};

/*
 * The exchange that a collective is, in which nobody leaves before the last has entered: times at
 * which this rank and the other one entered and left it.
 */
static inline struct clock_exchange torsh_clock_exchange_of_collective(int64_t entered_ns,
								       int64_t left_ns,
								       int64_t other_entered_ns,
								       int64_t other_left_ns)
{
	return (struct clock_exchange){.sent_ns = entered_ns,
				       .received_ns = other_left_ns,
				       .replied_ns = other_entered_ns,
				       .returned_ns = left_ns};
}

/* Of the other clock less this one, at a moment. */
struct clock_offset {
	int64_t offset_ns;
	uint64_t error_ns; /* the offset is known to that */
	double drift; /* change of the offset per time: 1e-6 is 1 ppm */
};

struct clock_estimate;

/*
 * Estimate from n exchanges, in the order in which they were sent. Impossible ones, which took less
 * than no time, are left out. Ends the program without memory. The caller destroys it.
 */
struct clock_estimate *torsh_clock_estimate_create(const struct clock_exchange *exchanges,
						   size_t n);

/* Free the estimate; NULL is ignored. */
void torsh_clock_estimate_destroy(struct clock_estimate *estimate);

/*
 * The offset at a time of this host's clock. Returns false if there is no exchange. Between two
 * segments, and before the first and after the last exchange, the error grows with the time to the
 * nearest ones.
 */
bool torsh_clock_estimate_at(const struct clock_estimate *estimate, int64_t at_ns,
			     struct clock_offset *offset);

/* The number of exchanges that were left out as impossible. */
size_t torsh_clock_estimate_rejected(const struct clock_estimate *estimate);

#endif
