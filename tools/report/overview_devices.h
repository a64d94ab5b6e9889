/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices on the page of `torsh report`: how they were recorded, their time and their memory. */
#ifndef TORSH_REPORT_OVERVIEW_DEVICES_H
#define TORSH_REPORT_OVERVIEW_DEVICES_H

#include "tools/base/json_writer.h"
#include "tools/device/kernels/kernel_groups.h"
#include "tools/device/owners/device_owners.h"
#include "tools/symbols/symbols.h"

struct overview_devices {
	const struct prepass *prepass;
	bool are_there; /* a process used devices, or tried to; else the rest is empty */
	struct kernels kernels;
	struct kernel_group *groups; /* by time, the longest first */
	size_t n_groups;
	struct memory_of_devices memory;
	struct shared_devices shared;
	/* of the device and process with the highest peak, then; owned_by NULL: there is none */
	const struct device_process *owned_by;
	size_t owned_place;
	struct device_owners owners;
};

/*
 * Collect the section's data. recording and prepass stay the caller's and must outlive it. Ends
 * the program if the recording can't be read.
 */
void torsh_overview_devices_collect(struct overview_devices *devices,
				    const struct recording *recording,
				    struct recorded_process *const *processes, size_t n_processes,
				    const struct prepass *prepass, struct symbols *symbols);

/* Free what collect has filled. */
void torsh_overview_devices_free(struct overview_devices *devices);

/* Print the section as text; nothing if there are no devices. */
void torsh_overview_devices_text(const struct overview_devices *devices, struct symbols *symbols);

/*
 * Emit "devices": {"total_ns", "attributed_ns", "processes", "memory", "owners", "shared"}; null:
 * there are none.
 */
void torsh_overview_devices_json(struct json_writer *json, const struct overview_devices *devices);

#endif
