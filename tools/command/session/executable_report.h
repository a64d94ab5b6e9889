/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Checks whether the agent can be preloaded into a program, before it runs, so that `torsh run`
 * never records nothing without a message.
 */
#ifndef TORSH_COMMAND_SESSION_EXECUTABLE_REPORT_H
#define TORSH_COMMAND_SESSION_EXECUTABLE_REPORT_H

#include <stddef.h>

/*
 * Returns the file that a command's name runs: itself if it has a slash, else found in PATH. The
 * caller frees the path. NULL: not found.
 */
char *torsh_program_find(const char *name);

/*
 * Check the file, and the interpreters of its #! lines. Returns 0, or -EINVAL with a sentence in
 * reason: why the agent can't be preloaded.
 */
int torsh_program_check(const char *path, char *reason, size_t n_reason);

#endif
