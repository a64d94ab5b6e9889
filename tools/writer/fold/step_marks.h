/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The steps of a training, as far as the process marks when they begin. The best source of marks
 * counts: steps that the program marks, else those of torch.profiler's schedule, else the calls of
 * its first optimizer, of which each ends a step. Where the process keeps a schedule of its own,
 * that counts the steps.
 *
 * At most STEP_MARKS_MAX are kept: when they are full every second one goes, and from then on only
 * each so many steps is one.
 */
#ifndef TORSH_WRITER_FOLD_STEP_MARKS_H
#define TORSH_WRITER_FOLD_STEP_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"

#define STEP_MARKS_MAX 8192u

/*
 * What a step is called where blocks are: its number and 1. 0: none, or the number has more than 32
 * bits.
 */
typedef uint32_t step_name;

/*
 * A module or a DataLoader was called before any step was marked: where an optimizer marks steps
 * later, this is the first one, 0.
 */
#define STEP_PERHAPS_FIRST UINT32_MAX

struct step_marks {
	enum step_source source;
	bool is_scheduled;
	uint32_t optimizer; /* the label of the first one */
	uint32_t record; /* of its call, while is_optimizing */
	bool is_optimizing;
	step_name current; /* the step that goes on */
	uint64_t start_stamp; /* of the first call of a module or a DataLoader; 0: there was none */
	struct step_mark {
		uint64_t stamp;
		step_name name;
	} * items; /* n of them, room for STEP_MARKS_MAX */
	uint32_t n;
	uint32_t stride; /* steps from one mark to the next */
	uint64_t n_steps; /* that were marked */
};

/* Free the marks. */
void torsh_step_marks_destroy(struct step_marks *marks);

/*
 * A step begins; number UINT64_MAX: it has none and is counted. Marks by a worse way than one seen
 * before are passed over; a better one begins anew. Returns whether the mark counts.
 */
bool torsh_step_marks_mark(struct step_marks *marks, enum step_source source, uint64_t number,
			   uint64_t stamp);

/* An event of the timeline; name is that of its call. Returns whether a step begins with it. */
bool torsh_step_marks_take(struct step_marks *marks, const struct event *event, const char *name,
			   uint64_t stamp);

/* The number of the last mark at or before the stamp; UINT32_MAX: the stamp is before the first. */
uint32_t torsh_step_marks_find(const struct step_marks *marks, uint64_t stamp);

/* The step of that time, or the first one of its stride. */
step_name torsh_step_marks_name_at(const struct step_marks *marks, uint64_t stamp);

/* The name of a step when all is known that will be. */
static inline step_name torsh_step_marks_final(step_name name, bool is_by_optimizer)
{
	return name == STEP_PERHAPS_FIRST ? (step_name)is_by_optimizer : name;
}

#endif
