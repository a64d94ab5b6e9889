/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device memory allocations that the driver refused because memory ran out. A framework's allocator
 * may free memory and retry: allocations that then still fail are counted separately.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_REFUSALS_H
#define TORSH_DEVICE_MEMORY_DEVICE_REFUSALS_H

#include "tools/device/memory/device_blocks.h"

#define REFUSALS_KEPT 100u /* the latest of a place */

/* The values that a framework's allocator reports for a device. */
struct device_framework {
	uint32_t device;
	uint64_t allocated, reserved;
};

struct device_refusal {
	struct event_device_refused said;
	struct device_origin origin;
	uint64_t live_bytes; /* the process's live bytes there at that time */
	bool has_framework;
	struct device_framework framework; /* at that time */
};

struct device_refusals {
	uint64_t n, n_given_up; /* n: by the driver; n_given_up: by the framework's allocator */
	struct device_refusal largest; /* the first of the largest; valid if n isn't 0 */
	struct device_refusal *latest; /* oldest first */
	size_t n_latest, latest_room;
};

/* Count a refused allocation; it is stored among the latest and, if it is, as the largest. */
void torsh_device_refusals_add(struct device_refusals *refusals,
			       const struct device_refusal *refusal);

/* Free the refusals. */
void torsh_device_refusals_free(struct device_refusals *refusals);

#endif
