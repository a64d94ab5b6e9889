/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the machine's memory controllers read and wrote over time: a thread of the writer reads
 * their counters while a recorded process counts on its CPUs. They count for the whole machine, all
 * programs, so nothing of it is a process's own.
 */
#ifndef TORSH_WRITER_TRAFFIC_TRAFFIC_METER_H
#define TORSH_WRITER_TRAFFIC_TRAFFIC_METER_H

#include "tools/writer/traffic/uncore_counters.h"

/* Between two readings, and how many there are before that doubles, again and again. */
#define TRAFFIC_PERIOD_NS UINT64_C(10000000)
#define TRAFFIC_POINTS_DOUBLE 8192u
#define TRAFFIC_COST 100u /* a reading that takes longer than the period by this comes less often */

struct traffic_meter;

struct traffic_options {
	const char *root; /* as torsh_uncore_pmus_find */
	const struct uncore_calls *calls;
	uint64_t period_ns;
};

struct traffic_point {
	uint64_t at_ns; /* monotonic */
	uint64_t sums[2]; /* bytes read and written since the first point */
};

/* How it is counted, so far. */
struct traffic_state {
	bool is_begun; /* the counters are open, or there is a problem */
	char name[UNCORE_NAME_BYTES]; /* as uncore_pmus */
	uint32_t n_sources, n_counters;
	enum memory_traffic_problem problem;
	int error; /* of perf_event_open or read; 0: none */
	bool has_paranoid;
	int32_t paranoid; /* kernel.perf_event_paranoid, if it failed */
	double counted_share;
};

/* Start the thread. Returns NULL if that fails. What options points to outlives the meter. */
struct traffic_meter *torsh_traffic_start(const struct traffic_options *options);

/* Returns the state; *points: the *n points since the last call, which the caller frees. */
struct traffic_state torsh_traffic_take(struct traffic_meter *meter, struct traffic_point **points,
					size_t *n);

/* Have it read once more, and end the thread. What it read can still be taken. */
void torsh_traffic_stop(struct traffic_meter *meter);

/* Free it, after the stop. */
void torsh_traffic_destroy(struct traffic_meter *meter);

#endif
