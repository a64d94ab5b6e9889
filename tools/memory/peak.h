/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The peak of the heap: of one process, or session-wide. */
#ifndef TORSH_MEMORY_PEAK_H
#define TORSH_MEMORY_PEAK_H

#include "tools/memory/allocation_sites.h"

struct peak {
	/* The process that the peak belongs to; NULL: the sum of all. */
	const struct recorded_process *process;
	bool is_known;
	uint64_t bytes, blocks;
	uint64_t at_ns; /* since the session's start */
	/* events that were folded late: the sum may have been higher. 0 for one process */
	uint64_t late_changes;
};

/*
 * Returns the peak of the n >= 1 given processes. The sum is recorded only for all processes
 * together; for a part of them it is the highest peak of one.
 */
struct peak torsh_peak_choose(const struct recording *recording,
			      struct recorded_process *const *processes, size_t n);

/* Returns where the allocation sites at that peak are, as long as the peak stays where it is. */
struct sites_source torsh_peak_source(const struct peak *peak, const struct recording *recording);

/* Collect the allocation sites at that peak. */
void torsh_peak_collect(struct allocation_sites *sites, const struct peak *peak,
			const struct recording *recording);

/* Returns the variance of its bytes and blocks; 0: they are exact, or unknown for a sum. */
struct estimate_variance torsh_peak_variance(const struct peak *peak,
					     const struct recording *recording);

#endif
