/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that grows from step to step: stacks whose live bytes at ends of steps go on rising
 * (growth_trend.h). Which blocks are alive is no matter: a ring that is full has new ones in each
 * step, and does not grow.
 *
 * Recordings without moments at ends of steps, as older writers made them, have for each stack the
 * steps that its live blocks come from: a cache that warms up has live blocks from the first steps,
 * a bounded cache from the last ones, a leak from all.
 */
#ifndef TORSH_MEMORY_GROWTH_GROWTH_H
#define TORSH_MEMORY_GROWTH_GROWTH_H

#include "tools/memory/allocation_sites.h"
#include "tools/timeline/prepass/prepass.h"

#define GROWTH_STEPS_MIN 8u /* minimum number of parts */

/* Added to an enum step_rule in process->steps.rule: steps of a rule that the writer lacks. */
#define GROWTH_READERS_RULES 16u

enum growth_over { GROWTH_OVER_STEPS, GROWTH_OVER_TIME };

struct growth {
	/* What growth is looked for in; zeroed: over the steps that the writer saw, the run. */
	bool takes_time; /* over time where no process has steps */
	const struct prepass *prepass; /* steps of processes of which the writer saw none */
	const struct windows *windows; /* of the processes given */

	/*
	 * blocks and bytes are what a stack gained over growth_span steps or seconds, by the slope;
	 * their variance is that of the slope. Of an older recording: those of these steps that are
	 * alive; the variance is not known
	 */
	struct allocation_sites found;
	struct counted_sites small; /* that torsh_growth_fold took out of found */
	double small_rate; /* their bytes by step or second */
	struct counted_sites suppressed; /* that torsh_growth_suppress took out of found */
	enum growth_over over;
	uint64_t n_steps; /* of the process with most steps */
	bool is_enough; /* some process had enough steps, or samples, to decide */
};

/* What a site grows by in a step or a second. */
struct growth_rate {
	double bytes, blocks;
	double bytes_error, blocks_error; /* standard errors; NAN: not known */
};

/*
 * Find the stacks that grow from step to step in these processes. The caller frees with
 * torsh_growth_free.
 */
void torsh_growth_find(struct growth *growth, struct recorded_process *const *processes,
		       size_t n_processes);

/* Take the reader's steps for those of a process in which the writer saw none. */
void torsh_growth_take_steps(struct recorded_process *process, const struct steps *steps);

/* Take stacks with less than 0.1 % of the growth out of those found: small; after merging. */
void torsh_growth_fold(struct growth *growth);

/* Free the growth. */
void torsh_growth_free(struct growth *growth);

/* Returns the rate of a site that torsh_growth_find found. */
struct growth_rate torsh_growth_rate(const struct allocation_site *site);

/* Returns the bytes that all sites of a list and the small ones grow by in a step or a second. */
double torsh_growth_bytes(const struct growth *growth);

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
