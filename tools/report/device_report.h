/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of a device in reports, except its allocation sites: the framework's values, the
 * driver's, the joint peak.
 */
#ifndef TORSH_REPORT_DEVICE_REPORT_H
#define TORSH_REPORT_DEVICE_REPORT_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/memory/device_memory.h"

/* The moment that a report is about. */
enum device_when { DEVICE_AT_PEAK, DEVICE_AT_END };

/*
 * Emit "framework": {"allocated_bytes", "reserved_bytes", "unmanaged_bytes"}: its allocator's
 * values at that moment; null if it reported none.
 */
void torsh_device_framework_json(struct json_writer *json, const struct device_process *process,
				 size_t place, enum device_when when);

/* Emit "seen_by": "CUPTI" or "entry points"; null: unknown. */
void torsh_device_seen_json(struct json_writer *json, const struct device_process *process);

/*
 * Emit "driver": {"free_bytes", "total_bytes", "used_bytes", "live_bytes", "others_bytes",
 * "at_ns", "asked_by", "asked_at", "reason", ...}: the driver's report nearest to that moment.
 * reason: why it is of another moment, or why there is none.
 */
void torsh_device_room_json(struct json_writer *json, const struct device_process *process,
			    size_t place, enum device_when when);

/*
 * Emit the item {"pid", "current_bytes", "current_blocks", "unsized_blocks", "seen_by",
 * "framework", "driver", ...} of a process at its end.
 */
void torsh_device_end_json(struct json_writer *json, const struct device_process *process,
			   size_t place);

/*
 * Emit "joint": {"bytes", "at_ns", "heap_bytes", "devices": [{"device", "bytes"}]}; null if
 * unknown.
 */
void torsh_device_joint_json(struct json_writer *json, const struct device_process *process);

/* Print these as lines of text; place may be DEVICE_NO_PLACE: only the joint peak. */
void torsh_device_text(FILE *out, const struct device_process *process, size_t place,
		       enum device_when when);

/*
 * Write a sentence with the existing devices for a name that is not among them; without devices,
 * why there are none.
 */
void torsh_device_missing(const struct memory_of_devices *memory, const char *name, char *out,
			  size_t n_out);

/* Print that sentence and end the program. */
_Noreturn void torsh_device_refuse(const struct memory_of_devices *memory, const char *name);

#endif
