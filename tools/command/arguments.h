/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The words of a command line that several commands take: sizes, times, numbers, steps, one name of
 * a list, the recording and the process. A wrong word ends the command with usage.
 */
#ifndef TORSH_COMMAND_ARGUMENTS_H
#define TORSH_COMMAND_ARGUMENTS_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

/* Parse a size for an option, in bytes. */
uint64_t torsh_argument_size(struct argp_state *state, const char *option, const char *text);

/* Parse a time for an option, in ns. */
uint64_t torsh_argument_duration(struct argp_state *state, const char *option, const char *text);

/*
 * Parse a moment for an option, "1.5s", "200ms", "30us": ns since the recording began; seconds
 * without a unit.
 */
uint64_t torsh_argument_moment(struct argp_state *state, const char *option, const char *text);

/* Parse a decimal number for an option. */
uint64_t torsh_argument_number(struct argp_state *state, const char *option, const char *text);

/* Parse numbers of steps: "3", "3-5". */
void torsh_argument_steps(struct argp_state *state, const char *text, uint64_t *first,
			  uint64_t *last);

/* The index in names of the text; two names or more. */
size_t torsh_argument_choice(struct argp_state *state, const char *option, const char *const *names,
			     size_t n, const char *text);

/*
 * Parse the one argument that is a recording: the case of ARGP_KEY_ARG and of ARGP_KEY_END in a
 * parser, ARGP_ERR_UNKNOWN for other keys. *path begins as NULL. Without one it is the newest
 * recording of the working directory, which is named on stderr.
 */
error_t torsh_argument_path(int key, const char *argument, struct argp_state *state,
			    const char **path);

/* The same for the one argument that is a process. *pid begins as 0. */
error_t torsh_argument_process(int key, const char *argument, struct argp_state *state,
			       uint32_t *pid);

#endif
