/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What ran: the processes that did the work, and those that are folded into a line. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_PROCESSES_H
#define TORSH_REPORT_SCREEN_SCREEN_PROCESSES_H

#include "tools/report/overview.h"

/*
 * The processes by their part of the work, the most first. Shells, and what did less than a
 * hundredth of what the first did, are folded.
 */
struct screen_processes {
	const struct overview *overview;
	size_t *order; /* indices of the overview's processes */
	size_t n_shown;
};

/* Sort the processes. The caller frees with torsh_screen_processes_free. */
void torsh_screen_processes_sort(struct screen_processes *processes,
				 const struct overview *overview);

/* Free the order. */
void torsh_screen_processes_free(struct screen_processes *processes);

/* "train.py (pid 9505): exit 0 after 7.596 s", a line each, with the steps if n_steps isn't 0. */
void torsh_screen_processes_main(const struct screen_processes *processes, size_t n_steps);

/* "and 78 helpers: bash 75, sed 3"; programs that were not followed, with the reason. */
void torsh_screen_processes_folded(const struct screen_processes *processes);

/* Returns the programs of processes and how many ran each: "bash 75, sed 3, 4 others"; to be freed. */
char *torsh_screen_programs(const struct recorded_process *const *processes, size_t n);

#endif
