/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files that a module refers to (.gnu_debuglink, .gnu_debugaltlink, DW_AT_dwo_name): elfutils opens
 * these itself, and would block on a pipe or a device.
 */
#ifndef TORSH_SYMBOLS_NAMED_FILES_H
#define TORSH_SYMBOLS_NAMED_FILES_H

#include <stdbool.h>

/*
 * While true, a library on this thread can open only regular files for reading; others appear to be
 * missing. Returns the previous state.
 */
bool torsh_named_files_guard(bool is_guarded);

#endif
