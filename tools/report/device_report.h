/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of a device in reports, besides its allocation sites: the framework's view of
 * it, the driver's, the joint peak.
 */
#ifndef TORSH_REPORT_DEVICE_REPORT_H
#define TORSH_REPORT_DEVICE_REPORT_H

#include <stdio.h>

#include "tools/base/json.h"
#include "tools/device/memory/device_memory.h"

/* Of what moment a report is. */
enum device_when { DEVICE_AT_PEAK, DEVICE_AT_END };

/*
 * {"allocated_bytes", "reserved_bytes", "unmanaged_bytes"}: what the allocator said then. null
 * where none spoke of it.
 */
cJSON *torsh_device_framework_json(const struct device_process *process, size_t place,
				   enum device_when when);

/* "CUPTI" or "entry points"; null: it is not known. */
cJSON *torsh_device_seen_json(const struct device_process *process);

/*
 * {"free_bytes", "total_bytes", "used_bytes", "live_bytes", "others_bytes", "at_ns", "asked_by",
 * "asked_at", "reason", ...}: what the driver said nearest to that moment. reason: why it was
 * another one, or why nothing is known.
 */
cJSON *torsh_device_room_json(const struct device_process *process, size_t place,
			      enum device_when when);

/*
 * {"pid", "current_bytes", "current_blocks", "unsized_blocks", "seen_by", "framework", "driver",
 * ...}: of a process at its end.
 */
cJSON *torsh_device_end_json(const struct device_process *process, size_t place);

/*
 * {"bytes", "at_ns", "heap_bytes", "devices": [{"device", "bytes"}]}; null where it is not known.
 */
cJSON *torsh_device_joint_json(const struct device_process *process);

/* The same as lines for people; place may be DEVICE_NO_PLACE: of the joint peak alone. */
void torsh_device_text(FILE *out, const struct device_process *process, size_t place,
		       enum device_when when);

/*
 * A sentence that says which devices there are, if any, and not that of this name; NULL: there is
 * none at all.
 */
void torsh_device_missing(const struct memory_of_devices *memory, const char *name, char *out,
			  size_t n_out);

/* Ends with that sentence. */
_Noreturn void torsh_device_refuse(const struct memory_of_devices *memory, const char *name);

#endif
