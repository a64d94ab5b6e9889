/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of a device in reports, besides its allocation sites: the framework's view of
 * it, the driver's, the joint peak.
 */
#ifndef TORSH_REPORT_DEVICE_REPORT_H
#define TORSH_REPORT_DEVICE_REPORT_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/memory/device_memory.h"

/* Of what moment a report is. */
enum device_when { DEVICE_AT_PEAK, DEVICE_AT_END };

/*
 * "framework": {"allocated_bytes", "reserved_bytes", "unmanaged_bytes"}: what its allocator
 * reported then. null where none did.
 */
void torsh_device_framework_json(struct json_writer *json, const struct device_process *process,
				 size_t place, enum device_when when);

/* "seen_by": "CUPTI" or "entry points"; null: it is not known. */
void torsh_device_seen_json(struct json_writer *json, const struct device_process *process);

/*
 * "driver": {"free_bytes", "total_bytes", "used_bytes", "live_bytes", "others_bytes", "at_ns",
 * "asked_by", "asked_at", "reason", ...}: what the driver reported nearest to that moment. reason:
 * why it was another one, or why nothing is known.
 */
void torsh_device_room_json(struct json_writer *json, const struct device_process *process,
			    size_t place, enum device_when when);

/*
 * The item {"pid", "current_bytes", "current_blocks", "unsized_blocks", "seen_by", "framework",
 * "driver", ...} of a process at its end.
 */
void torsh_device_end_json(struct json_writer *json, const struct device_process *process,
			   size_t place);

/*
 * "joint": {"bytes", "at_ns", "heap_bytes", "devices": [{"device", "bytes"}]}; null where it is
 * not known.
 */
void torsh_device_joint_json(struct json_writer *json, const struct device_process *process);

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
