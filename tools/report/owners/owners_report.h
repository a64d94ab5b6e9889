/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The owners of a device's memory, in torsh peak and torsh report. */
#ifndef TORSH_REPORT_OWNERS_OWNERS_REPORT_H
#define TORSH_REPORT_OWNERS_OWNERS_REPORT_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/owners/device_owners.h"

/*
 * Emit "driver_bytes", "driver_ns", "driver_reason", "owners": [{"kind", "name", "bytes", "blocks",
 * "reason"}] and "cache". The owners add up to driver_bytes or, where that is null, to the live
 * bytes.
 */
void torsh_owners_json(struct json_writer *json, const struct device_owners *owners);

/* Print a line for each kind, with the largest names; indent: columns before it. */
void torsh_owners_text(FILE *out, const struct device_owners *owners, int indent);

#endif
