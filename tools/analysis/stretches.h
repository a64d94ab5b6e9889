/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stretches of time in which a device was busy, added as reported and read in the order of their
 * begins. The stretches of one stream are ordered except if several threads launch: so they are
 * stored in ordered runs, as differences of some seven bytes each, and merged.
 */
#ifndef TORSH_ANALYSIS_STRETCHES_H
#define TORSH_ANALYSIS_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/store/columns_bytes.h"

struct device_stretch {
	uint64_t begin_ns, end_ns, asked_ns; /* asked_ns: begin of the call that launched it */
	bool is_communication;
};

struct stretch_run;

/* Zeroed: empty. */
struct stretches {
	struct stretch_run *runs;
	size_t n_runs, n_room, latest; /* latest: the run that got the last stretch */
};

/* Add a stretch of activity on a stream, in any order. */
void torsh_stretches_add(struct stretches *stretches, uint32_t stream,
			 const struct device_stretch *stretch);

/* Free the stretches. */
void torsh_stretches_free(struct stretches *stretches);

/* A read position in a run. */
struct stretch_cursor {
	struct device_stretch stretch;
	struct column_reader bytes;
};

struct stretch_walk {
	struct stretch_cursor *heap; /* a heap, the earliest at its top */
	size_t n;
};

/* Start a walk over all stretches, which must not change meanwhile. */
void torsh_stretches_walk(struct stretch_walk *walk, const struct stretches *stretches);

/* Get the next stretch by begin. Returns false after the last, when the walk is over. */
bool torsh_stretches_next(struct stretch_walk *walk, struct device_stretch *stretch);

#endif
