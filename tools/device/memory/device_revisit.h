/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A further pass over the memory of a process: its blocks as they were at a moment. */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_REVISIT_H
#define TORSH_DEVICE_MEMORY_DEVICE_REVISIT_H

#include "tools/device/memory/device_pass.h"

struct device_revisit {
	const struct memory_of_devices *memory;
	struct device_blocks blocks;
	struct device_graphs graphs;
	struct device_moment until; /* further changes are not applied */
	bool is_over; /* the moment was passed */
};

/* Begin without blocks; torsh_device_revisit_destroy frees them. memory must outlive it. */
void torsh_device_revisit_create(struct device_revisit *revisit,
				 const struct memory_of_devices *memory,
				 const struct device_moment *until);

/* Free the blocks. */
void torsh_device_revisit_destroy(struct device_revisit *revisit);

/* Whether an event, which is yet to be taken, is after the moment. */
bool torsh_device_revisit_is_over(struct device_revisit *revisit,
				  const struct timeline_event *event);

/* Take any event of the process; one after the moment changes nothing. */
void torsh_device_revisit_take(struct device_revisit *revisit,
			       const struct recorded_process *process,
			       const struct timeline_event *event, const struct span *innermost);

#endif
