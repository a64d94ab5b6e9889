/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Devices that several processes used at once, and their common peak. Each process numbers devices
 * from 0, as CUDA_VISIBLE_DEVICES leaves them: two are the same if their UUIDs match or, if one
 * process did not report a UUID (without CUPTI), their numbers.
 *
 * Imported memory is counted once, for its owner. A process's memory ends with it.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_SHARED_H
#define TORSH_DEVICE_MEMORY_DEVICE_SHARED_H

#include "tools/device/memory/device_memory.h"

/* The part of one process on a device. */
struct device_part {
	const struct device_process *process;
	size_t place; /* of it */
	uint64_t bytes; /* at the common peak */
};

struct shared_device {
	const char *uuid; /* NULL: at least one of them did not report it */
	struct device_part *parts; /* in the order of processes; several */
	size_t n_parts, parts_room;
	/* the first moment of the highest sum, since the session's start */
	uint64_t peak_bytes, peak_ns;
};

struct shared_devices {
	struct shared_device *items;
	size_t n, n_room;
};

/* Find the shared devices. The memory stays the caller's and must outlive them. */
void torsh_shared_devices_find(struct shared_devices *shared,
			       const struct memory_of_devices *memory);

/* Free the devices. */
void torsh_shared_devices_free(struct shared_devices *shared);

/* Returns true if one of its processes uses that name; NULL matches any. */
bool torsh_shared_device_is_called(const struct shared_device *device, const char *name);

#endif
