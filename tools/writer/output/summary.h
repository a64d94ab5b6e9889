/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The few lines at the end of a session, and what is kept of each finished process for them. */
#ifndef TORSH_WRITER_OUTPUT_SUMMARY_H
#define TORSH_WRITER_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/writer/input/target.h"

struct process_summary {
	char program[64];
	uint32_t pid;
	uint64_t n_events, n_dropped;
	uint64_t peak_bytes, peak_ns; /* since the process's start */
	uint64_t live_bytes, live_blocks;
	bool has_heap; /* it was recorded: otherwise the four before are 0 */
	bool is_lossy; /* torsh_target_is_lossy */
	bool ended_with_exit; /* after its exit it did nothing that was recorded */
};

struct summary {
	struct process_summary *processes;
	uint32_t n, capacity;
};

/* Free what the summary holds. */
void torsh_summary_destroy(struct summary *summary);

/* Add the target as it is now. */
void torsh_summary_add(struct summary *summary, const struct target *target);

/*
 * Print the processes with most events, and where the recording is. Nothing when no process sent a
 * hello.
 */
void torsh_summary_print(FILE *out, const struct summary *summary, const char *recording);

#endif
