/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where a session's recording goes, and what is exported of it at the end: what
 * TORSH_PROFILER_OUTPUT says, and the file that is made of it.
 */
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
 * What the configuration says for the process pid of the program with that base name, which the
 * output keeps.
 */
void torsh_output_plan(struct output *output, const char *program, uint64_t pid);

/*
 * Make the recording, in the directory for temporary files where it can't be made in its place.
 * Returns its descriptor, close-on-exec and locked until the last copy is closed, or -errno; what
 * went wrong was said on stderr.
 */
int torsh_output_make(struct output *output);

#endif
