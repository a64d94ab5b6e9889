/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that grows from step to step: stacks with live blocks from every part of the run. A cache
 * that warms up has live blocks from the first steps, a bounded cache from the last ones, a leak
 * from all.
 */
#ifndef TORSH_MEMORY_GROWTH_GROWTH_H
#define TORSH_MEMORY_GROWTH_GROWTH_H

#include "tools/memory/allocation_sites.h"

#define GROWTH_STEPS_MIN 8u /* minimum number of parts */

struct growth {
	/* blocks and bytes are those of the later steps: late_steps of the process */
	struct allocation_sites found;
	uint64_t n_steps; /* of the process with most steps */
	bool is_enough; /* some process had enough steps to decide */
};

/*
 * Find the stacks that grow from step to step in these processes. The caller frees with
 * torsh_growth_free.
 */
void torsh_growth_find(struct growth *growth, struct recorded_process *const *processes,
		       size_t n_processes);

/* Free the growth. */
void torsh_growth_free(struct growth *growth);

/* Returns true if a stack with survivors in these parts of the steps (bit i: part i of n) grows. */
bool torsh_growth_is_steady(uint64_t parts, uint32_t n);

/*
 * Returns true if the survivors of the second quarter of the steps are so many fewer than those of
 * the last one that blocks must be freed one by one. That is the case for bounded caches with
 * random replacement: older entries become rarer.
 */
bool torsh_growth_is_replaced(uint64_t n_early, uint64_t n_last);

/* Returns the rule of the steps, "an optimizer's calls", ...; NULL: no steps are known. */
const char *torsh_growth_rule(const struct recorded_process *process);

#endif
