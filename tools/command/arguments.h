/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Parsers for arguments of several commands: sizes, times, numbers, steps, a name from a list, the
 * recording and the process. An invalid argument ends the command with a usage message.
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

/* Parse an age for an option, "10s" or "3steps": ns, or else a number of steps. */
void torsh_argument_age(struct argp_state *state, const char *option, const char *text,
			uint64_t *ns, uint64_t *n_steps);

/* Parse a decimal number for an option. */
uint64_t torsh_argument_number(struct argp_state *state, const char *option, const char *text);

/* Parse numbers of steps: "3", "3-5". */
void torsh_argument_steps(struct argp_state *state, const char *text, uint64_t *first,
			  uint64_t *last);

/* Returns the index of the text in n names; n is at least 2. */
size_t torsh_argument_choice(struct argp_state *state, const char *option, const char *const *names,
			     size_t n, const char *text);

/*
 * Parse the only argument, a recording: handles ARGP_KEY_ARG and ARGP_KEY_END of a parser, and
 * returns ARGP_ERR_UNKNOWN for other keys. *path is NULL at first. The default is the newest
 * recording in the working directory, which is named on stderr.
 */
error_t torsh_argument_path(int key, const char *argument, struct argp_state *state,
			    const char **path);

/* Parse the only argument, a process, likewise. *pid is 0 at first. */
error_t torsh_argument_process(int key, const char *argument, struct argp_state *state,
			       uint32_t *pid);

#endif
