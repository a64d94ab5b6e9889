/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a device was busy: the union of the times of all that it did, exactly. Held are 16 bytes for
 * each stretch.
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

/* In any order. */
void torsh_busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns);

/* To be called when all have been added, before any query. */
void torsh_busy_settle(struct busy *busy);

/*
 * How long it was busy in there. *next: of the interval to begin with, 0 at first, for questions
 * that go on in time.
 */
uint64_t torsh_busy_within(const struct busy *busy, uint64_t from_ns, uint64_t to_ns, size_t *next);

void torsh_busy_free(struct busy *busy);

#endif
