/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the steps of a process consist of, moment by moment. A step is followed on the thread that
 * runs most operators in the steps; where threads work on steps of their own, on each of these. At
 * each moment the first of these that holds is the part:
 *
 *	gc	  the thread runs Python's garbage collector
 *	data	  it waits, in what loads batches
 *	operators another thread runs an operator
 *	gil, ...  it waits for something else
 *	operators it runs an operator
 *	between	  none of this
 *
 * So the parts of a step add up to its duration.
 */
#ifndef TORSH_CPU_STEP_PARTS_H
#define TORSH_CPU_STEP_PARTS_H

#include "tools/timeline/prepass/prepass.h"

/* PART(NAME, name, text) */
#define STEP_PARTS                                                           \
	PART(OPERATORS, operators, "operators")                              \
	PART(BETWEEN, between, "between operators")                          \
	PART(DATA, data, "waiting for data")                                 \
	PART(GIL, gil, "waiting for Python's lock")                          \
	PART(LOCKS, locks, "waiting for other threads")                      \
	PART(IO, io, "waiting for descriptors and disks")                    \
	PART(OTHER_WAITS, other_waits, "sleeping, or waiting for a process") \
	PART(GC, gc, "collecting garbage")

enum step_part {
#define PART(NAME, name, text) PART_##NAME,
	STEP_PARTS
#undef PART
		N_STEP_PARTS
};

extern const char *const torsh_step_part_names[N_STEP_PARTS];
extern const char *const torsh_step_part_texts[N_STEP_PARTS];

struct step_parts {
	uint64_t ns[N_STEP_PARTS];
};

/*
 * Find the parts of the process's steps in the pre-pass. Returns an item for each, which the caller
 * frees. Ends the program if the recording cannot be read.
 */
struct step_parts *torsh_step_parts_find(const struct recording *recording,
					 struct recorded_process *process,
					 const struct prepass *prepass);

#endif
