/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The summary lines at the end of a session, and the data of finished processes that they need. */
#ifndef TORSH_WRITER_OUTPUT_SUMMARY_H
#define TORSH_WRITER_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/writer/input/target.h"

struct process_summary {
	char program[64];
	uint32_t pid;
	uint64_t n_events, n_dropped;
	uint64_t peak_bytes, peak_ns; /* since the process's start */
	uint64_t live_bytes, live_blocks;
	bool has_heap; /* the heap was recorded: otherwise the four fields above are 0 */
	bool has_operators, has_devices; /* it ran operators, it launched work of devices */
	bool is_lossy; /* torsh_target_is_lossy */
	bool ended_with_exit; /* no events after its exit */
};

struct summary {
	struct process_summary *processes;
	uint32_t n;
	size_t capacity;
};

/* Free the summary. */
void torsh_summary_destroy(struct summary *summary);

/* Add the target's current state. */
void torsh_summary_add(struct summary *summary, const struct target *target);

/*
 * Print the processes with the most events, and the path of the recording. Prints nothing if no
 * process sent a hello.
 */
void torsh_summary_print(FILE *out, const struct summary *summary, const char *recording);

#endif
