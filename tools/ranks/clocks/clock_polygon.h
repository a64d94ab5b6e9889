/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lines offset + drift * time that satisfy all limits so far, as a convex polygon. */
#ifndef TORSH_RANKS_CLOCKS_CLOCK_POLYGON_H
#define TORSH_RANKS_CLOCKS_CLOCK_POLYGON_H

#include <stdbool.h>

#define CLOCK_VERTICES_MAX 64

struct clock_vertex {
	double offset; /* ns */
	double drift; /* ns per s */
};

struct clock_polygon {
	int n; /* 0: no line satisfies them */
	struct clock_vertex vertices[CLOCK_VERTICES_MAX];
};

/* All lines with offsets and drifts up to these. */
void torsh_clock_polygon_create(struct clock_polygon *polygon, double offset, double drift);

/*
 * Keep the lines that are at most value at that time (is_upper) or at least. A limit for which
 * there is no room is left out, which only makes the polygon larger. Returns false, and leaves the
 * polygon, if no line would remain.
 */
bool torsh_clock_polygon_limit(struct clock_polygon *polygon, double time_s, double value,
			       bool is_upper);

/* The lowest and the highest line at that time. */
void torsh_clock_polygon_extent(const struct clock_polygon *polygon, double time_s, double *low,
				double *high);

#endif
