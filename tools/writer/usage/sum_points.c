/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/usage/sum_points.h"

#include <stdlib.h>

#include "tools/base/die.h"

void torsh_sum_points_add(struct sum_points *points, uint64_t stamp, uint64_t first,
			  uint64_t second)
{
	if (!points->items) {
		points->items = torsh_need_items(NULL, 0, SUM_POINTS_MAX, sizeof(*points->items));
		points->every = 1;
	}
	if (points->n_left_out++ % points->every)
		return;
	if (points->n == SUM_POINTS_MAX) {
		for (uint32_t i = 0; i < SUM_POINTS_MAX / 2; i++)
			points->items[i] = points->items[2 * i];
		points->n = SUM_POINTS_MAX / 2;
		points->every *= 2;
	}
	points->items[points->n++] = (struct sum_point){.stamp = stamp, .sums = {first, second}};
}

void torsh_sum_points_free(struct sum_points *points)
{
	free(points->items);
	*points = (struct sum_points){0};
}
