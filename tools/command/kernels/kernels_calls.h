/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The parts of torsh kernels about devices and calls, and about launch parameters. */
#ifndef TORSH_COMMAND_KERNELS_KERNELS_CALLS_H
#define TORSH_COMMAND_KERNELS_KERNELS_CALLS_H

#include "tools/base/json_writer.h"
#include "tools/device/kernels/device_calls.h"

/* Emit the members "devices", "calls", "waits" and "overhead". */
void torsh_kernels_emit_calls(struct json_writer *json, const struct device_calls *calls);

/*
 * Emit "launches": the launch parameters of the kernel of that name, the longest first; a few of
 * them.
 */
void torsh_kernels_emit_shapes(struct json_writer *json, const struct device_calls *calls,
			       const char *name);

/* Print the tables of devices, calls, waits and overhead on stdout. */
void torsh_kernels_show_calls(const struct device_calls *calls);

#endif
