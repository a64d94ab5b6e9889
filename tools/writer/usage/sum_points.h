/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two sums of a process over time, at up to SUM_POINTS_MAX moments that are equally far apart or
 * so. Of a long run each second one is left out, again and again.
 */
#ifndef TORSH_WRITER_USAGE_SUM_POINTS_H
#define TORSH_WRITER_USAGE_SUM_POINTS_H

#include <stdint.h>

#define SUM_POINTS_MAX 512u

/* Begins zeroed. */
struct sum_points {
	struct sum_point {
		uint64_t stamp; /* of the target's clock */
		uint64_t sums[2];
	} * items; /* SUM_POINTS_MAX; NULL: none yet */
	uint32_t n;
	uint32_t every, n_left_out; /* of the moments one in `every` becomes a point */
};

/* Add a moment, later than those before. */
void torsh_sum_points_add(struct sum_points *points, uint64_t stamp, uint64_t first,
			  uint64_t second);

/* Free them. */
void torsh_sum_points_free(struct sum_points *points);

#endif
