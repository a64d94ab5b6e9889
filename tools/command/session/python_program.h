/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `torsh run` of a Python script or module: finds the interpreter and makes its command line.
 */
#ifndef TORSH_COMMAND_SESSION_PYTHON_PROGRAM_H
#define TORSH_COMMAND_SESSION_PYTHON_PROGRAM_H

#include <stdbool.h>

/*
 * Does Python have to run this file? True for a readable file NAME.py, unless it is executable,
 * begins with #! and is named with a slash, and for a file that is not executable and has python in
 * its #! line.
 */
bool torsh_is_python_script(const char *name);

/*
 * The command line of the interpreter before a NULL-terminated one that is a script and its
 * arguments, or with module "-m MODULE" and its arguments. The interpreter is that of the virtual
 * environment that torsh is installed into, else python3 from PATH; without any the command ends.
 * The caller frees the array and its first element.
 */
char **torsh_python_command(const char *module, char **command);

/* The directory of this program, without a trailing slash; the caller frees it. NULL with errno. */
char *torsh_own_directory(void);

#endif
