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
	char path[PATH_MAX]; /* directory, or file when is_file */
	bool is_file;
	char recording[PATH_MAX]; /* once it is made */
	char export[PATH_MAX]; /* what else is written at the end, by its ending; "": nothing */
};

/*
 * Derive the output from the configuration, for process pid of the program with that base name; the
 * output keeps the pointer to program.
 */
void torsh_output_plan(struct output *output, const char *program, uint64_t pid);

/*
 * Create the recording, or one in the directory for temporary files where that fails. Returns its
 * descriptor, close-on-exec and locked until its last copy is closed, or -errno after a message on
 * stderr.
 */
int torsh_output_make(struct output *output);

#endif
