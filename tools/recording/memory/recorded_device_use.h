/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who used the memory of a device at one moment, by NVML: a part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_DEVICE_USE_H
#define TORSH_RECORDING_MEMORY_RECORDED_DEVICE_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_USE_UNKNOWN UINT64_MAX /* bytes that the driver does not tell */

struct recorded_device_user {
	uint32_t pid; /* as the driver has it */
	uint64_t bytes; /* or DEVICE_USE_UNKNOWN */
	char *name; /* of its program; NULL: unknown */
};

/* As in DeviceUse. */
struct recorded_device_use {
	char *uuid; /* NULL: of no device; then there is a problem */
	uint64_t begin_ns, end_ns;
	bool has_memory;
	uint64_t total_bytes, used_bytes;
	char *problem; /* NULL: none */
	struct recorded_device_user *users;
	size_t n_users;
};

#endif
