/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `torsh run` of a Python script or module: finds the interpreter and makes its command line.
 */
#ifndef TORSH_COMMAND_SESSION_PYTHON_PROGRAM_H
#define TORSH_COMMAND_SESSION_PYTHON_PROGRAM_H

#include <stdbool.h>

/*
 * Returns whether Python must run this file: a readable file NAME.py, unless it is executable,
 * begins with #! and is given with a slash; or a file that is not executable and has python in its
 * #! line.
 */
bool torsh_is_python_script(const char *name);

/*
 * Returns the interpreter's command line for a NULL-terminated command, which is a script and its
 * arguments, or with module "-m MODULE" and its arguments. The interpreter is that of torsh's
 * virtual environment, else python3 from PATH; without any the command ends. The caller frees the
 * array and its first element.
 */
char **torsh_python_command(const char *module, char **command);

/*
 * Returns the directory of this program, without a trailing slash; the caller frees it. NULL with
 * errno.
 */
char *torsh_own_directory(void);

#endif
