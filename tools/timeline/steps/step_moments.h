/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Moments at which steps may begin or end, in time order. */
#ifndef TORSH_TIMELINE_STEPS_STEP_MOMENTS_H
#define TORSH_TIMELINE_STEPS_STEP_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

/* A moment that may bound steps, or the time of a span. */
struct moment {
	uint64_t start_ns, end_ns, number;
	uint64_t step; /* number given by the schedule */
	uint32_t name;
	bool is_used; /* of a batch: operators follow before the next one */
};

/* Zeros are none; free items. */
struct moments {
	struct moment *items;
	size_t n, n_room;
};

static inline void torsh_moments_add(struct moments *moments, struct moment moment)
{
	moments->items =
		torsh_array_reserve(moments->items, moments->n, &moments->n_room, sizeof(moment));
	moments->items[moments->n++] = moment;
}

#endif
