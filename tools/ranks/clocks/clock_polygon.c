/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/clocks/clock_polygon.h"

void torsh_clock_polygon_create(struct clock_polygon *polygon, double offset, double drift)
{
	*polygon = (struct clock_polygon){
		.n = 4,
		.vertices = {{-offset, -drift},
			     {offset, -drift},
			     {offset, drift},
			     {-offset, drift}},
	};
}

static double at(const struct clock_vertex *vertex, double time_s)
{
	return vertex->offset + vertex->drift * time_s;
}

/* The point between two vertices where the line has that value. */
static struct clock_vertex cross(const struct clock_vertex *from, const struct clock_vertex *to,
				 double time_s, double value)
{
	double first = at(from, time_s), share = (value - first) / (at(to, time_s) - first);

	return (struct clock_vertex){
		.offset = from->offset + share * (to->offset - from->offset),
		.drift = from->drift + share * (to->drift - from->drift),
	};
}

/* Sutherland and Hodgman's clipping, by one half-plane. */
bool torsh_clock_polygon_limit(struct clock_polygon *polygon, double time_s, double value,
			       bool is_upper)
{
	struct clock_polygon kept = {0};
	double sign = is_upper ? 1 : -1;

	for (int i = 0; i < polygon->n; i++) {
		const struct clock_vertex *vertex = &polygon->vertices[i],
					  *next = &polygon->vertices[(i + 1) % polygon->n];
		bool is_in = sign * (at(vertex, time_s) - value) <= 0;
		bool is_next_in = sign * (at(next, time_s) - value) <= 0;

		if (kept.n + 2 > CLOCK_VERTICES_MAX)
			return true;
		if (is_in)
			kept.vertices[kept.n++] = *vertex;
		if (is_in != is_next_in)
			kept.vertices[kept.n++] = cross(vertex, next, time_s, value);
	}
	if (!kept.n)
		return false;
	*polygon = kept;
	return true;
}

void torsh_clock_polygon_extent(const struct clock_polygon *polygon, double time_s, double *low,
				double *high)
{
	*low = *high = at(&polygon->vertices[0], time_s);
	for (int i = 1; i < polygon->n; i++) {
		double value = at(&polygon->vertices[i], time_s);

		*low = value < *low ? value : *low;
		*high = value > *high ? value : *high;
	}
}
