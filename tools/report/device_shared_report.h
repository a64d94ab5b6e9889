/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices that several processes used at once, in torsh peak and torsh report. */
#ifndef TORSH_REPORT_DEVICE_SHARED_REPORT_H
#define TORSH_REPORT_DEVICE_SHARED_REPORT_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/memory/device_shared.h"

/*
 * Emit "shared": [{"uuid", "identified_by", "peak_bytes", "at_ns", "processes": [{"pid", "device",
 * "bytes", "peak_bytes"}]}]; name: only devices that some process calls so; NULL: all.
 */
void torsh_shared_devices_json(struct json_writer *json, const struct shared_devices *shared,
			       const char *name);

/* Print the same as lines; nothing if there are none. */
void torsh_shared_devices_text(FILE *out, const struct shared_devices *shared, const char *name);

#endif
