/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The busy time of a device: the exact union of the times of its activities. Uses 16 bytes per
 * interval.
 */
#ifndef TORSH_TIMELINE_DEVICE_BUSY_H
#define TORSH_TIMELINE_DEVICE_BUSY_H

#include <stddef.h>
#include <stdint.h>

struct busy_interval {
	uint64_t begin_ns, end_ns;
};

/* Zeros are none. */
struct busy {
	struct busy_interval *intervals;
	size_t n, n_room;
};

/* Add an interval, in any order. */
void torsh_busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns);

/* Call after the last add and before the first query. */
void torsh_busy_settle(struct busy *busy);

/*
 * Returns the busy time within an interval. *next is the index to begin with, initially 0, for
 * queries in time order.
 */
uint64_t torsh_busy_within(const struct busy *busy, uint64_t from_ns, uint64_t to_ns, size_t *next);

/* Free the intervals. */
void torsh_busy_free(struct busy *busy);

#endif
