/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The path of a session's recording and of the export at its end, from TORSH_PROFILER_OUTPUT. */
#ifndef TORSH_AGENT_SESSION_OUTPUT_PATH_H
#define TORSH_AGENT_SESSION_OUTPUT_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct output {
	const char *program; /* base name */
	uint64_t pid;
	char path[PATH_MAX]; /* a directory, or a file if is_file */
	bool is_file;
	char recording[PATH_MAX]; /* set when it is created */
	char export[PATH_MAX]; /* extra output at the end, chosen by its ending; "": none */
};

/*
 * Derive the output from the configuration, for process pid of the program with that base name. The
 * output keeps the pointer to program.
 */
void torsh_output_plan(struct output *output, const char *program, uint64_t pid);

/*
 * Create the recording, in the directory for temporary files if the chosen place fails. Returns its
 * descriptor, close-on-exec and locked until its last copy is closed, or -errno after a message on
 * stderr.
 */
int torsh_output_make(struct output *output);

#endif
