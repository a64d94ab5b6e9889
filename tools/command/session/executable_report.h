/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Can a program be preloaded? Looked at before it is run, so that `torsh run` never records nothing
 * in silence.
 */
#ifndef TORSH_COMMAND_SESSION_EXECUTABLE_REPORT_H
#define TORSH_COMMAND_SESSION_EXECUTABLE_REPORT_H

#include <stddef.h>

/*
 * The file that would be run for a command's name: itself when it has a slash, else found along
 * PATH. Returns a path that the caller frees, or NULL.
 */
char *torsh_program_find(const char *name);

/*
 * Check the file, and the interpreters that its #! lines lead to. Returns 0, or -EINVAL with a
 * sentence in reason: why the agent can't be preloaded.
 */
int torsh_program_check(const char *path, char *reason, size_t n_reason);

#endif
