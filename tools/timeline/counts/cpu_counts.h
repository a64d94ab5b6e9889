/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sums of a thread's counters of the CPU, as cpu_counts and cpu_hardware_counts have them, and what
 * follows from them.
 */
#ifndef TORSH_TIMELINE_COUNTS_CPU_COUNTS_H
#define TORSH_TIMELINE_COUNTS_CPU_COUNTS_H

#include "tools/base/containers/sparse_array.h"
#include "tools/recording/timeline.h"

struct cpu_counts {
	uint64_t n; /* cpu_counts that were added; 0: the rest is 0, and unknown */
	uint32_t has; /* a bit for each enum cpu_counter that all of them have */
	uint64_t counts[N_CPU_COUNTERS]; /* as read */
	struct {
		uint64_t enabled_ns, running_ns;
	} groups[N_COUNTER_GROUPS];
};

extern const char *const torsh_cpu_counter_names[N_CPU_COUNTERS];

/* Whether the event has counts. */
static inline bool torsh_cpu_counts_are_in(const struct event *event)
{
	return event->id == EVENT_CPU_COUNTS || event->id == EVENT_CPU_HARDWARE_COUNTS;
}

/* Add what the event has. */
void torsh_cpu_counts_take(struct cpu_counts *counts, const struct event *event);

/* Add a sum. */
void torsh_cpu_counts_add(struct cpu_counts *counts, const struct cpu_counts *more);

/*
 * Returns whether a counter is known. Where its group was on the PMU for a part of the time only,
 * *value is extrapolated to all of it.
 */
bool torsh_cpu_counts_value(const struct cpu_counts *counts, enum cpu_counter counter,
			    double *value);

/* Of a hardware counter: the part of the time for which it counted; 1: all. */
double torsh_cpu_counts_share(const struct cpu_counts *counts, enum cpu_counter counter);

/* Returns whether both are known and *per is counter / of * scale; of is above 0. */
bool torsh_cpu_counts_ratio(const struct cpu_counts *counts, enum cpu_counter counter,
			    enum cpu_counter of, double scale, double *per);

/* How the memory of a piece of code is accessed, by its counters. */
enum access_pattern {
	ACCESS_UNKNOWN, /* counters are missing, or there are too few instructions */
	ACCESS_RESIDENT, /* what it reads is in the first cache */
	ACCESS_CACHED, /* it is in a cache of this processor */
	ACCESS_STREAMING, /* from memory, page after page */
	ACCESS_RANDOM, /* from memory, a page each time */
	ACCESS_MIXED, /* from memory, neither clearly */
	N_ACCESS_PATTERNS,
};

extern const char *const torsh_access_pattern_names[N_ACCESS_PATTERNS];

/* As far as the counters have it. */
enum access_pattern torsh_cpu_counts_pattern(const struct cpu_counts *counts);

/* Of a process, of the whole run. */
struct process_counts {
	bool is_known; /* counters were requested */
	struct event_cpu_counter_mode mode; /* if is_known */
	struct sparse_array threads; /* of struct cpu_counts, by row of the process's threads */
	struct sparse_array ran_operators; /* of bool, by the same rows */
};

/* What threads without operators did, as those of OpenMP: counts of no operator have it. */
struct counts_elsewhere {
	size_t n_uncounted; /* of these threads: they had not ended at the end */
	double ns, all_ns; /* processor time of the others of these, and of all threads */
};

/* Create it without any. */
void torsh_process_counts_create(struct process_counts *counts);

/* Pass any event of the process. */
void torsh_process_counts_take(struct process_counts *counts,
			       const struct recorded_process *process,
			       const struct timeline_event *event);

/* Call with each operator's thread. */
void torsh_process_counts_operator(struct process_counts *counts, uint32_t thread);

/* What threads without operators did. */
struct counts_elsewhere torsh_process_counts_elsewhere(const struct process_counts *counts,
						       const struct recorded_process *process);

/* Free them. */
void torsh_process_counts_free(struct process_counts *counts);

#endif
