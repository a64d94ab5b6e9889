/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Devices that several processes used at once, and when they held most of one together. Processes
 * count devices each from 0, as CUDA_VISIBLE_DEVICES leaves them: what shows whether two mean the
 * same is its UUID, and where one of them did not report that (without CUPTI), the number.
 *
 * Memory of another process that was imported has no bytes of its own, and is counted once, as its
 * owner's. What a process had ends with it.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_SHARED_H
#define TORSH_DEVICE_MEMORY_DEVICE_SHARED_H

#include "tools/device/memory/device_memory.h"

/* A process's, of a device. */
struct device_part {
	const struct device_process *process;
	size_t place; /* of it */
	uint64_t bytes; /* at the common peak */
};

struct shared_device {
	const char *uuid; /* NULL: at least one of them did not report it */
	struct device_part *parts; /* in the order of processes; several */
	size_t n_parts, parts_room;
	/* the first moment at which the sum was highest, since the session's start */
	uint64_t peak_bytes, peak_ns;
};

struct shared_devices {
	struct shared_device *items;
	size_t n, n_room;
};

/* The memory stays the caller's, and outlives them. */
void torsh_shared_devices_find(struct shared_devices *shared,
			       const struct memory_of_devices *memory);
void torsh_shared_devices_free(struct shared_devices *shared);

/* Is that what one of its processes calls it? NULL is any name. */
bool torsh_shared_device_is_called(const struct shared_device *device, const char *name);

#endif
