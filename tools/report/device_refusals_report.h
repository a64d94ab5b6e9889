/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Allocations that the driver refused, in reports. */
#ifndef TORSH_REPORT_DEVICE_REFUSALS_REPORT_H
#define TORSH_REPORT_DEVICE_REFUSALS_REPORT_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/memory/device_memory.h"

/* Emit "refused": {"count", "given_up", "largest", "latest"}. */
void torsh_device_refusals_json(struct json_writer *json, const struct device_process *process,
				size_t place, struct symbols *symbols, enum stack_view view);

/* Print the largest and the last one as lines; nothing if there was none. */
void torsh_device_refusals_text(FILE *out, const struct device_process *process, size_t place,
				struct symbols *symbols);

#endif
