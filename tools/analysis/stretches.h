/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stretches of time in which a device was at work, as they come, to be had in the order of their
 * begins. What one stream did comes in order but for what several threads launched: so they are
 * kept in runs that are in order, as differences, some seven bytes each, and merged.
 */
#ifndef TORSH_ANALYSIS_STRETCHES_H
#define TORSH_ANALYSIS_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/store/columns_bytes.h"

struct device_stretch {
	uint64_t begin_ns, end_ns, asked_ns; /* asked_ns: when the call that launched it began */
	bool is_communication;
};

struct stretch_run;

/* All zeros: none. */
struct stretches {
	struct stretch_run *runs;
	size_t n_runs, n_room, latest; /* latest: where the last one went */
};

/* Add a stretch of work on a stream, in any order. */
void torsh_stretches_add(struct stretches *stretches, uint32_t stream,
			 const struct device_stretch *stretch);

/* Free the stretches. */
void torsh_stretches_free(struct stretches *stretches);

/* Where a run is read. */
struct stretch_cursor {
	struct device_stretch stretch;
	struct column_reader bytes;
};

struct stretch_walk {
	struct stretch_cursor *heap; /* the earliest first */
	size_t n;
};

/* Over all that were added, which stay as they are meanwhile. */
void torsh_stretches_walk(struct stretch_walk *walk, const struct stretches *stretches);

/* The next one by its begin. Returns false after the last; then the pass is over. */
bool torsh_stretches_next(struct stretch_walk *walk, struct device_stretch *stretch);

#endif
