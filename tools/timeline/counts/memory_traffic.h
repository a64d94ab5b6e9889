/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the machine's memory controllers moved in pieces of time, by readings that lie in these:
 * nothing is interpolated, so a piece of less than two readings has none.
 */
#ifndef TORSH_TIMELINE_COUNTS_MEMORY_TRAFFIC_H
#define TORSH_TIMELINE_COUNTS_MEMORY_TRAFFIC_H

#include "tools/recording/recording.h"

/* Closer readings tell no rate: when exactly each counter was read isn't known. */
#define TRAFFIC_NS_MIN UINT64_C(5000000)

/* Of all programs. */
struct memory_traffic {
	uint64_t ns; /* between the first and the last reading of each piece; 0: none */
	uint64_t read_bytes, written_bytes; /* in this time */
};

/* Returns what was moved between two times. */
struct memory_traffic torsh_memory_traffic_in(const struct recorded_memory_traffic *recorded,
					      uint64_t from_ns, uint64_t to_ns);

/* Add a sum. */
void torsh_memory_traffic_add(struct memory_traffic *traffic, const struct memory_traffic *more);

/* Returns the highest rate between two adjacent readings there, in bytes a ns; 0: there is none. */
double torsh_memory_traffic_highest(const struct recorded_memory_traffic *recorded,
				    uint64_t from_ns, uint64_t to_ns);

#endif
