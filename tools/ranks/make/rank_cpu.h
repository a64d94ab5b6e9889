/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For how long the threads of a process ran and waited for a CPU, and for how long the host
 * withheld CPUs from it, in a part of its time: between two recorded points in proportion.
 */
#ifndef TORSH_RANKS_MAKE_RANK_CPU_H
#define TORSH_RANKS_MAKE_RANK_CPU_H

#include "tools/recording/recording.h"

/* Sums in ns; those that are not known are 0. */
struct rank_cpu {
	uint64_t ran_ns, waited_ns, throttled_ns, stolen_ns;
	bool has_time, has_throttled, has_stolen; /* of the process: ran_ns and waited_ns, ... */
};

/* Returns the sums from from_ns to to_ns; zeros outside of the points. */
struct rank_cpu torsh_rank_cpu(const struct recorded_process *process, uint64_t from_ns,
			       uint64_t to_ns);

#endif
