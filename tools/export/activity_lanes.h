/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What devices did as pictures show it: in the order in which it began, each stream's on a lane on
 * which nothing overlaps. What does overlap (branches of a graph, dependent launches) gets another
 * lane of its stream, with its times as they are. What overlaps by no more than OVERLAP_NS does so
 * because the clocks of device and host were compared again in between: it is shown as long as it
 * was, from where the one before it ends.
 *
 * Devices report late and out of order. The latest WINDOW rows are held and sorted; what comes
 * later still, after what it should precede, gets a lane like what overlaps.
 */
#ifndef TORSH_EXPORT_ACTIVITY_LANES_H
#define TORSH_EXPORT_ACTIVITY_LANES_H

#include "tools/export/trace.h"

/* more than both clocks are ever apart (clock_width_ns of torsh kernels) */
#define OVERLAP_NS 1000u
/* of a stream; what overlaps so many others is left out, and counted */
#define DEVICE_LANES_MAX 256u

/* Where rows are put. */
struct device_lane {
	const struct recorded_process *process;
	uint32_t device, context, stream;
	uint32_t number; /* among those of its stream, from 0 */
	uint64_t last_ns; /* end of the last row */
	uint64_t own; /* the exporter's */
	/* the exporter's, of the process's device: what its first lane was given; 0: this is it */
	uint64_t device_own;
};

struct activity_lanes_visitor {
	/* A lane that is used for the first time. */
	void (*lane)(void *context, struct device_lane *lane);
	/* begin_ns: where it is shown, the row's own or a little later. */
	void (*activity)(void *context, const struct device_activity *row,
			 const struct device_lane *lane, uint64_t begin_ns);
};

struct activity_lanes;

/* Begin; the visitor receives activities in order, each with its lane. It outlives the lanes. */
struct activity_lanes *torsh_activity_lanes_create(const struct activity_lanes_visitor *visitor,
						   void *context);

/* Add an activity, which is copied; earlier ones may be passed to the visitor. */
void torsh_activity_lanes_add(struct activity_lanes *rows, const struct device_activity *activity);

/* Pass on what is held and free the lanes. Returns the number of activities left out. */
uint64_t torsh_activity_lanes_destroy(struct activity_lanes *rows);

#endif
