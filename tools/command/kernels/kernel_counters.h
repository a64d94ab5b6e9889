/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counter values in torsh kernels: aggregated over the measured kernels of one name, and how each
 * process was measured.
 */
#ifndef TORSH_COMMAND_KERNELS_KERNEL_COUNTERS_H
#define TORSH_COMMAND_KERNELS_KERNEL_COUNTERS_H

#include "tools/base/json_writer.h"
#include "tools/device/kernels/counters.h"

/*
 * Emit "counters": {"measured", "metrics"} of the kernels with this symbol; null: none was
 * measured.
 */
void torsh_kernel_counters_json(struct json_writer *json, const struct counters *counters,
				const char *symbol);

/* Print the same as lines of text. */
void torsh_kernel_counters_print(const struct counters *counters, const char *symbol);

/* Emit "counters": how the devices of each process were measured, and what was left out. */
void torsh_kernel_counters_modes_json(struct json_writer *json, const struct counters *counters);

/* Print the same as lines of text. */
void torsh_kernel_counters_modes_print(const struct counters *counters);

#endif
