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

/* What a kind has. */
struct owner_sum {
	enum owner_kind kind;
	int64_t bytes;
};

/* Set the sums of the kinds that have something, the largest first. Returns their number. */
size_t torsh_owners_sums(const struct device_owners *owners, struct owner_sum sums[N_OWNER_KINDS]);

/* Emit "kinds": [{"kind", "bytes"}], the largest first. */
void torsh_owners_kinds_json(struct json_writer *json, const struct device_owners *owners);

/* Print a line for each kind, with the largest names; indent: columns before it. */
void torsh_owners_text(FILE *out, const struct device_owners *owners, int indent);

#endif
