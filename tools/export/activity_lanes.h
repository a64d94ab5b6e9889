/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lanes of device activities for trace viewers: in the order of their begins, each stream's on a
 * lane without overlaps. Activities that overlap (branches of a graph, dependent launches) are on
 * further lanes of their stream, with unchanged times. An overlap of at most OVERLAP_NS comes from
 * a new comparison of device and host clock: the activity is moved behind the previous one, and
 * keeps its duration.
 *
 * Devices report late and out of order. The latest WINDOW activities are held and sorted; one that
 * comes even later is treated as an overlap.
 */
#ifndef TORSH_EXPORT_ACTIVITY_LANES_H
#define TORSH_EXPORT_ACTIVITY_LANES_H

#include "tools/export/trace.h"

/* more than the clocks ever differ (clock_width_ns of torsh kernels) */
#define OVERLAP_NS 1000u
/* per stream; activities that overlap more are left out and counted */
#define DEVICE_LANES_MAX 256u

/* A lane and its state. */
struct device_lane {
	const struct recorded_process *process;
	uint32_t device, context, stream;
	uint32_t number; /* number within its stream, from 0 */
	uint64_t last_ns; /* end of its last activity */
	uint64_t own; /* the exporter's value */
	/* the exporter's value for the process's device, set for its first lane; 0: this is it */
	uint64_t device_own;
};

struct activity_lanes_visitor {
	/* Called before the first activity of a lane. */
	void (*lane)(void *context, struct device_lane *lane);
	/* begin_ns: where it is shown, at its begin or a little later. */
	void (*activity)(void *context, const struct device_activity *row,
			 const struct device_lane *lane, uint64_t begin_ns);
};

struct activity_lanes;

/*
 * Create the lanes; the visitor receives activities in order, each with its lane, and must outlive
 * them.
 */
struct activity_lanes *torsh_activity_lanes_create(const struct activity_lanes_visitor *visitor,
						   void *context);

/* Add an activity, which is copied; earlier ones may be passed to the visitor. */
void torsh_activity_lanes_add(struct activity_lanes *rows, const struct device_activity *activity);

/* Pass on all held activities and free the lanes. Returns the number of activities left out. */
uint64_t torsh_activity_lanes_destroy(struct activity_lanes *rows);

#endif
