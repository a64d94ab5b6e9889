/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The figures of devices that budgets limit. */
#ifndef TORSH_COMMAND_CHECK_CHECK_DEVICES_H
#define TORSH_COMMAND_CHECK_CHECK_DEVICES_H

#include "tools/command/reading.h"

#define FIGURE_REASON_BYTES 512u

struct device_figure {
	bool is_known;
	uint64_t value;
	char device[DEVICE_SCOPE_NAME_BYTES]; /* its name; "": sum of all */
	char reason[FIGURE_REASON_BYTES]; /* why it is unknown */
};

struct device_figures {
	struct device_figure peak, leak, refused; /* of memory */
	struct device_figure time_ns; /* of kernels, copies and memsets */
};

/*
 * Get the figures of memory. device: the one to check; NULL: the highest peak of all, and the sum
 * of all leaks and refusals, with managed and pinned memory.
 */
void torsh_check_devices_memory(struct device_figures *figures, const struct reading *reading,
				struct read_options *options, const char *device);

/* Get the time of kernels, copies and memsets, in ns, for the device or all. */
void torsh_check_devices_time(struct device_figures *figures, const struct reading *reading,
			      const char *device);

#endif
