/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The steps of a training, by their start times. The best source of marks wins: the program's own
 * step marks, else torch.profiler's schedule, else the calls of the first optimizer, each of which
 * ends a step. If the process has its own schedule, that schedule counts the steps.
 *
 * At most STEP_MARKS_MAX marks are stored: when the array is full, every second mark is removed and
 * the stride doubles.
 */
#ifndef TORSH_WRITER_FOLD_STEP_MARKS_H
#define TORSH_WRITER_FOLD_STEP_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"

#define STEP_MARKS_MAX 8192u

/* The name of a step in blocks: its number + 1. 0: no step, or the number exceeds 32 bits. */
typedef uint32_t step_name;

/*
 * A module or a DataLoader ran before any step mark: if an optimizer marks steps later, this is
 * step 0.
 */
#define STEP_PERHAPS_FIRST UINT32_MAX

struct step_marks {
	enum step_source source;
	bool is_scheduled;
	uint32_t optimizer; /* label of the first optimizer */
	uint32_t record; /* of its current call, while is_optimizing */
	bool is_optimizing;
	step_name current; /* of the current step */
	uint64_t start_stamp; /* of the first module or DataLoader call; 0: none */
	struct step_mark {
		uint64_t stamp;
		step_name name;
	} * items; /* n of them; capacity STEP_MARKS_MAX */
	uint32_t n;
	uint32_t stride; /* steps per mark */
	uint64_t n_steps; /* marked so far */
};

/* Free the marks. */
void torsh_step_marks_destroy(struct step_marks *marks);

/*
 * A step begins. number UINT64_MAX: the steps are counted. Marks from a worse source than an
 * earlier one are ignored; a better source starts over. Returns true if the mark is used.
 */
bool torsh_step_marks_mark(struct step_marks *marks, enum step_source source, uint64_t number,
			   uint64_t stamp);

/* Apply a timeline event; name is its operator, module or range. Returns true if a step begins. */
bool torsh_step_marks_take(struct step_marks *marks, const struct event *event, const char *name,
			   uint64_t stamp);

/*
 * Returns the number of the last mark at or before the stamp; UINT32_MAX: the stamp is before the
 * first mark.
 */
uint32_t torsh_step_marks_find(const struct step_marks *marks, uint64_t stamp);

/* Returns the step at that time, or the first step of its stride. */
step_name torsh_step_marks_name_at(const struct step_marks *marks, uint64_t stamp);

/* Returns the final name of a step. Call after all marks are known. */
static inline step_name torsh_step_marks_final(step_name name, bool is_by_optimizer)
{
	return name == STEP_PERHAPS_FIRST ? (step_name)is_by_optimizer : name;
}

#endif
