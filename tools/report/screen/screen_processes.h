/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The processes on the screen: those that did most of the work, and a line for the others. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_PROCESSES_H
#define TORSH_REPORT_SCREEN_SCREEN_PROCESSES_H

#include "tools/report/overview.h"

/*
 * The processes by their share of the work, most first. Shells, and processes with less than a
 * hundredth of the first one's share, are folded.
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

/*
 * Print "train.py (pid 9505): exit 0 after 7.596 s" per process, with the steps if n_steps isn't
 * 0.
 */
void torsh_screen_processes_main(const struct screen_processes *processes, size_t n_steps);

/*
 * Print "and 78 helpers: bash 75, sed 3", and the programs that were not followed, with the
 * reason.
 */
void torsh_screen_processes_folded(const struct screen_processes *processes);

/* Returns an interpreter's script, else the program: "train.py". */
const char *torsh_screen_name(const struct recorded_process *process);

/* Returns the number of processes per program: "bash 75, sed 3, 4 others". The caller frees it. */
char *torsh_screen_programs(const struct recorded_process *const *processes, size_t n);

#endif
