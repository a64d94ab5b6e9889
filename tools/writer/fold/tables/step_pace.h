/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long the last steps of a training took, to detect one that is far slower. */
#ifndef TORSH_WRITER_FOLD_TABLES_STEP_PACE_H
#define TORSH_WRITER_FOLD_TABLES_STEP_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_PACE_STEPS 100u /* whose median counts */
#define STEP_PACE_FEWEST 20u /* before a step is judged */

/* A step that took far longer than the median of those before. */
struct slow_step {
	uint64_t ordinal; /* how many steps had begun before it */
	uint64_t begin_ns, ns, median_ns;
};

struct step_pace {
	uint64_t ns[STEP_PACE_STEPS]; /* of the last steps, as a ring */
	uint64_t n; /* steps that have ended */
	uint64_t begin_ns; /* of the current one; 0: none has begun */
	uint32_t slow_percent; /* of the median, from which a step is slow; 0: none is */
	bool has_slow; /* until the reader clears it */
	struct slow_step slow;
};

/* A step begins at that time, and the one before ends. */
void torsh_step_pace_take(struct step_pace *pace, uint64_t at_ns);

#endif
