/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What grows from step to step: stacks of which every stretch of the run has left blocks that are
 * still alive. A cache that warms up leaves them in the first steps, one that is bounded in the
 * last, a leak in all.
 */
#ifndef TORSH_MEMORY_GROWTH_H
#define TORSH_MEMORY_GROWTH_H

#include "tools/memory/allocation_sites.h"

#define GROWTH_STEPS_MIN 8u /* parts of steps that are needed to decide */

struct growth {
	/* blocks and bytes are those of the later steps, which are late_steps of the process */
	struct allocation_sites found;
	uint64_t n_steps; /* of the process with most */
	bool is_enough; /* some process had enough steps to decide */
};

/*
 * Find the stacks that grow from step to step in these processes. The caller frees with
 * torsh_growth_free.
 */
void torsh_growth_find(struct growth *growth, struct recorded_process *const *processes,
		       size_t n_processes);
void torsh_growth_free(struct growth *growth);

/* Does what has survivors in these parts of the steps (bit i: part i of n) grow? */
bool torsh_growth_is_steady(uint64_t parts, uint32_t n);

/*
 * Are there so many fewer survivors of the second quarter of the steps than of the last that they
 * must have been freed one by one? So it is where what is kept is bounded and entries are replaced
 * at random: their ages fall off.
 */
bool torsh_growth_is_replaced(uint64_t n_early, uint64_t n_last);

/* "an optimizer's calls", ...; NULL: nothing is known of steps. */
const char *torsh_growth_rule(const struct recorded_process *process);

#endif
