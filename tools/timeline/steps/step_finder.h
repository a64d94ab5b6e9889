/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the steps of a process: receives all its spans and events, in the order of a pass, then
 * decides.
 */
#ifndef TORSH_TIMELINE_STEPS_STEP_FINDER_H
#define TORSH_TIMELINE_STEPS_STEP_FINDER_H

#include "tools/timeline/steps.h"

struct step_finder;

/* A finder for one process; the caller destroys it. */
struct step_finder *torsh_step_finder_create(void);

/* Free the finder. */
void torsh_step_finder_destroy(struct step_finder *finder);

/* Pass each span's begin, in time order. */
void torsh_step_finder_begin(struct step_finder *finder, const struct span *span);

/* Pass each span's end. */
void torsh_step_finder_end(struct step_finder *finder, const struct span *span);

/* Pass each other event. */
void torsh_step_finder_event(struct step_finder *finder, const struct timeline_event *event);

/* Decide on the steps. last_ns: time of the process's last event. The caller frees *steps. */
void torsh_step_finder_decide(struct step_finder *finder, uint64_t last_ns,
			      const struct recorded_process *process, struct steps *steps);

#endif
