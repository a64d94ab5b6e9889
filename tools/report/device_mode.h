/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How the devices of a process were recorded, and what is missing: for torsh kernels and torsh
 * report.
 */
#ifndef TORSH_REPORT_DEVICE_MODE_H
#define TORSH_REPORT_DEVICE_MODE_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/device/kernels/kernels.h"

/*
 * Emit the item {"pid", "mode", "reason", "records", "dropped", ...}; null: nothing was reported.
 */
void torsh_device_mode_json(struct json_writer *json, const struct kernel_process *process);

/* Print the same as a line; nothing if the process used no device. */
void torsh_device_mode_text(FILE *out, const struct kernel_process *process);

#endif
