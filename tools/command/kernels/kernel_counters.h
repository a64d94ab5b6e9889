/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What torsh kernels shows of counters: the measured kernels of one name together, and how each
 * process was measured.
 */
#ifndef TORSH_COMMAND_KERNELS_KERNEL_COUNTERS_H
#define TORSH_COMMAND_KERNELS_KERNEL_COUNTERS_H

#include "tools/base/json.h"
#include "tools/device/kernels/counters.h"

/* {"measured", "metrics": [...]} of the kernels with this symbol, or null: none was measured. */
cJSON *torsh_kernel_counters_json(const struct counters *counters, const char *symbol);

/* The same as lines of text. */
void torsh_kernel_counters_print(const struct counters *counters, const char *symbol);

/* How devices of each process were measured, and what was left out. */
void torsh_kernel_counters_modes_json(struct json *json, const struct counters *counters);
void torsh_kernel_counters_modes_print(const struct counters *counters);

#endif
