/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Durations in buckets, for percentiles: 16 of equal width per power of two, so that the middle of
 * a bucket differs from a value by 1/32 (3.1 %) at most. Values below 16 are exact.
 */
#ifndef TORSH_TIMELINE_HISTOGRAM_H
#define TORSH_TIMELINE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 4 /* leading bits of a value that select a bucket within its power of two */
#define HISTOGRAM_BUCKETS (1u << HISTOGRAM_BITS)
#define HISTOGRAM_ROWS (64 - HISTOGRAM_BITS + 1)
#define HISTOGRAM_ERROR (1.0 / (2 * HISTOGRAM_BUCKETS))

struct histogram {
	uint64_t *rows[HISTOGRAM_ROWS]; /* allocated at the first value in the row */
	uint64_t n;
};

/* Add a value. A zeroed histogram is empty. Ends the program without memory. */
void torsh_histogram_add(struct histogram *histogram, uint64_t value);

/*
 * Returns the value at a quantile (0.5: the median), from the middle of its bucket; 0 if the
 * histogram is empty.
 */
uint64_t torsh_histogram_percentile(const struct histogram *histogram, double share);

/* Free the rows. */
void torsh_histogram_free(struct histogram *histogram);

#endif
