/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When the steps of a training began, as far as the process says so. The best rule that it gave cause for counts:
 * steps that the user marks, else those of a profiler's schedule, else the calls of its first optimizer.
 *
 * At most STEP_MARKS_MAX are kept: when they are full every second one goes, and from then on only each so many
 * steps is one.
 */
#ifndef TORSH_WRITER_STEP_MARKS_H
#define TORSH_WRITER_STEP_MARKS_H

#include <stdint.h>

#define STEP_MARKS_MAX 8192u

enum step_rule { STEPS_NONE, STEPS_BY_OPTIMIZER, STEPS_BY_PROFILER, STEPS_BY_USER };

struct step_marks {
	enum step_rule rule;
	uint32_t label; /* of the optimizer */
	uint64_t *stamps; /* n of them, room for STEP_MARKS_MAX */
	uint32_t n;
	uint32_t stride; /* steps from one mark to the next */
	uint64_t n_steps; /* by the rule */
};

void torsh_steps_destroy(struct step_marks *marks);

/*
 * A step begins. Marks by a rule that is worse than one seen before are passed over; a better one begins anew. Returns
 * whether the mark counts.
 */
int torsh_steps_mark(struct step_marks *marks, enum step_rule rule, uint64_t stamp);

/* The same for a scope that begins, by its name; label tells two optimizers apart. */
int torsh_steps_scope(struct step_marks *marks, uint32_t label, const char *name, uint64_t stamp);

/* The number of the last mark at or before the stamp; UINT32_MAX: the stamp is before the first. */
uint32_t torsh_steps_find(const struct step_marks *marks, uint64_t stamp);

#endif
