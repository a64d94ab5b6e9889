/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Launches with outstanding activities, by correlation: a hash table with removal. */
#ifndef TORSH_TIMELINE_DEVICE_LAUNCHES_H
#define TORSH_TIMELINE_DEVICE_LAUNCHES_H

#include "tools/timeline/device/launch_join.h"

struct launches {
	struct launch_waiting *slots;
	size_t n, n_slots; /* a power of two; at most half of them are used */
};

struct launch_waiting {
	struct device_launch launch; /* correlation 0: an empty slot */
	uint32_t n_told, n_awaited;
};

/* Begin without launches; torsh_launches_destroy frees them. */
void torsh_launches_create(struct launches *launches);

/* Free the table. */
void torsh_launches_destroy(struct launches *launches);

/*
 * Hold a launch until n_awaited activities are reported, unless its correlation id, which is not
 * 0, is in use.
 */
void torsh_launches_add(struct launches *launches, const struct device_launch *launch,
			uint32_t n_awaited);

/* Returns the launch with that correlation, or NULL; valid until the next change. */
struct launch_waiting *torsh_launches_find(const struct launches *launches, uint32_t correlation);

/* Remove a launch that is no longer awaited; the pointer is invalid afterwards. */
void torsh_launches_remove(struct launches *launches, struct launch_waiting *waiting);

#endif
