/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A progress bar on stderr, shown on a terminal for work that takes over a second. */
#ifndef TORSH_RECORDING_PROGRESS_H
#define TORSH_RECORDING_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total, started_ns, shown_ns;
	bool is_terminal, is_shown;
};

/* Show progress on stderr if it is a terminal. total and done have the same unit. */
void torsh_progress_start(struct progress *progress, const char *what, uint64_t total);

/* Update the bar. */
void torsh_progress_show(struct progress *progress, uint64_t done);

/* Erase the bar. */
void torsh_progress_end(struct progress *progress);

#endif
