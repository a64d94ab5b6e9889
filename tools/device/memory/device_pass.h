/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What both passes over the timeline share: the one of device_memory.c, and the one of
 * device_sites.c.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_PASS_H
#define TORSH_DEVICE_MEMORY_DEVICE_PASS_H

#include "tools/device/memory/device_memory.h"

/* Returns the origin of an event's change: its time, thread, stack, operator and step. */
struct device_origin torsh_device_origin(const struct prepass *prepass,
					 const struct recorded_process *process,
					 const struct timeline_event *event,
					 const struct span *innermost);

/* Visit the timeline of some of the recording's processes; ends the program if it can't be read. */
void torsh_device_memory_visit(const struct memory_of_devices *memory,
			       struct recorded_process *const *processes, size_t n_processes,
			       const struct span_visitor *visitor, void *context);

#endif
