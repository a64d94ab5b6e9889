/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Paths as people read them. */
#ifndef TORSH_TERMINAL_SHORT_PATH_H
#define TORSH_TERMINAL_SHORT_PATH_H

/*
 * Returns the part of path that is shown: relative to the working directory, else to the folder of
 * Python's packages ("torch/_ops.py"), else to that of Python's own library
 * ("python3.11/json/decoder.py"), else all. Points into path.
 */
const char *torsh_short_path(const char *path);

#endif
