/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files that a module names (.gnu_debuglink, .gnu_debugaltlink, DW_AT_dwo_name): elfutils opens
 * these itself, and would wait for a pipe's other end, or read a device that has no end.
 */
#ifndef TORSH_SYMBOLS_NAMED_FILES_H
#define TORSH_SYMBOLS_NAMED_FILES_H

#include <stdbool.h>

/*
 * While true, a file that a library opens on this thread to read it is a regular one; another one
 * is reported to the library as missing. Returns the previous state.
 */
bool torsh_named_files_guard(bool is_guarded);

#endif
