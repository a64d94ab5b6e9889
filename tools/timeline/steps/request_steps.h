/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Steps by requests: ranges of the domain torsh.request (torsh.h, Python's torsh.request). A thread
 * works on a request while its range is open, of several the one that began last. A request with a
 * number may have many ranges: it lasts from its first one to its last one. A range within another
 * one of the domain is part of that.
 *
 * Operators of a thread without such ranges count for the request that is open, if it is the only
 * one: a framework may run what it serves on a pool of threads.
 */
#ifndef TORSH_TIMELINE_STEPS_REQUEST_STEPS_H
#define TORSH_TIMELINE_STEPS_REQUEST_STEPS_H

#include "tools/timeline/steps.h"
#include "tools/timeline/steps/op_sequence.h"

#define REQUEST_DOMAIN "torsh.request"

/* A range of a request. */
struct request_range {
	uint64_t start_ns, end_ns, number;
	uint32_t thread, name;
	bool has_number;
};

/* Of a process; zeros are none; free items. */
struct requests {
	struct request_range *items; /* in the order of their ends */
	size_t n, n_room;
};

/* Pass each span's end. */
void torsh_requests_end(struct requests *requests, const struct span *span);

/* Make steps of the ranges, which are put into order; there is at least one. */
void torsh_requests_make(struct requests *requests, const struct op_sequences *sequences,
			 struct steps *steps);

#endif
