/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What budgets of devices are compared with. */
#ifndef TORSH_COMMAND_CHECK_DEVICES_H
#define TORSH_COMMAND_CHECK_DEVICES_H

#include "tools/command/reading.h"

#define FIGURE_REASON_BYTES 512u

struct device_figure {
	bool is_known;
	uint64_t value;
	char device[DEVICE_SCOPE_NAME_BYTES]; /* its name; "": of all together */
	char reason[FIGURE_REASON_BYTES]; /* why it is unknown */
};

struct device_figures {
	struct device_figure peak, leak, refused; /* of memory */
	struct device_figure time_ns; /* of kernels, copies and memsets */
};

/*
 * device: the one to check; NULL: the highest of all, of leaks and refusals the sum, with
 * managed and pinned memory.
 */
void torsh_check_devices_memory(struct device_figures *figures, const struct reading *reading,
				struct read_options *options, const char *device);

/* The same for the time of kernels, copies and memsets, in ns. */
void torsh_check_devices_time(struct device_figures *figures, const struct reading *reading,
			      const char *device);

#endif
