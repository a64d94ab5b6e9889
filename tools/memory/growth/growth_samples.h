/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The live blocks and bytes of stacks at regular moments of a process: at ends of steps, or at
 * times. At most GROWTH_SAMPLES_MAX moments are taken, as far apart as they can be.
 */
#ifndef TORSH_MEMORY_GROWTH_GROWTH_SAMPLES_H
#define TORSH_MEMORY_GROWTH_GROWTH_SAMPLES_H

#include "tools/recording/recording.h"
#include "tools/timeline/window.h"

#define GROWTH_SAMPLES_MAX 64u

struct growth_samples {
	double x[GROWTH_SAMPLES_MAX]; /* steps, or seconds; rises */
	size_t moments[GROWTH_SAMPLES_MAX]; /* of the process */
	size_t n;
};

/* Where samples are taken. */
struct growth_scope {
	/* of a rule that the writer does not know; NULL: the writer's */
	const struct steps *steps;
	const struct time_window *window; /* NULL: the whole run */
	bool is_of_time; /* in place of steps */
};

/* The live blocks and bytes of a stack at each sample. */
struct growth_series {
	uint32_t stack;
	double blocks[GROWTH_SAMPLES_MAX], bytes[GROWTH_SAMPLES_MAX];
};

/* Choose the samples of a process. */
void torsh_growth_samples_choose(struct growth_samples *samples,
				 const struct recorded_process *process,
				 const struct growth_scope *scope);

/* Call each with the series of every stack that changes often enough to grow. */
void torsh_growth_samples_each(const struct growth_samples *samples,
			       const struct recorded_process *process,
			       void (*each)(const struct growth_series *series, void *context),
			       void *context);

#endif
