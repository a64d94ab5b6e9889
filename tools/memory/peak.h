/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The highest moment of the heap: of one process, or of all processes of a session together.
 */
#ifndef TORSH_MEMORY_PEAK_H
#define TORSH_MEMORY_PEAK_H

#include "tools/memory/allocation_sites.h"

struct peak {
	/* The process that the peak belongs to; NULL: the sum of all. */
	const struct recorded_process *process;
	bool is_known;
	uint64_t bytes, blocks;
	uint64_t at_ns; /* since the session's start */
	/* taken for younger than they were: the sum may have been higher. 0 for one process */
	uint64_t late_changes;
};

/*
 * The peak of the processes requested, of n >= 1. The sum is known only of all together; of some of
 * them it is the highest peak that one had.
 */
struct peak torsh_peak_choose(const struct recording *recording,
			      struct recorded_process *const *processes, size_t n);

/* Who held memory then. */
void torsh_peak_collect(struct allocation_sites *sites, const struct peak *peak,
			const struct recording *recording);

#endif
