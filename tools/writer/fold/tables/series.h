/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A few sums over time, in at most SERIES_POINTS points: when the array is full, every second point
 * is removed and the interval doubles. Intervals without events have no point, because the sums do
 * not change.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SERIES_H
#define TORSH_WRITER_FOLD_TABLES_SERIES_H

#include <stdint.h>

#define SERIES_POINTS 1024u

struct series_point {
	uint64_t stamp;
	uint64_t heap_bytes, mapped_bytes, rss_bytes;
};

struct series {
	struct series_point points[SERIES_POINTS];
	uint32_t n_points;
	uint64_t next_stamp; /* the first event at or after this adds a point */
	uint64_t step;
};

/* Begin at the stamp, with points at least `step` stamps apart. */
static inline void torsh_series_start(struct series *series, uint64_t stamp, uint64_t step)
{
	series->n_points = 0;
	series->next_stamp = stamp;
	series->step = step ? step : 1;
}

/* Add a point. Call when a stamp is not below next_stamp. */
static inline void torsh_series_add(struct series *series, const struct series_point *point)
{
	if (series->n_points == SERIES_POINTS) {
		for (uint32_t i = 0; i < SERIES_POINTS / 2; i++)
			series->points[i] = series->points[2 * i];
		series->n_points = SERIES_POINTS / 2;
		if (series->step <= UINT64_MAX / 2)
			series->step *= 2;
	}
	series->points[series->n_points++] = *point;
	series->next_stamp = point->stamp + series->step;
	if (series->next_stamp < point->stamp)
		series->next_stamp = UINT64_MAX;
}

#endif
