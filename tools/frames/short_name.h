/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names of functions and places, short enough for a line of a terminal. */
#ifndef TORSH_FRAMES_SHORT_NAME_H
#define TORSH_FRAMES_SHORT_NAME_H

#include "tools/frames/frame_kind.h"

/*
 * Returns a demangled name without what a reader skips: "std::map<…>::insert" for "std::pair<...>
 * std::map<int, ...>::insert<...>(int&&) const". The caller frees it.
 */
char *torsh_short_function(const char *function);

/*
 * As torsh_short_function, for a frame; Python's names stay, an unknown one is "?". The caller
 * frees it.
 */
char *torsh_short_frame(const struct frame *frame);

/*
 * Returns a path relative to directory, to the folder that packages are installed in, or to the
 * standard library's: "train.py", "torch/_ops.py", "json/encoder.py". The result is a part of
 * path.
 */
const char *torsh_frame_path(const char *path, const char *directory);

/*
 * Returns where a frame is: "torch/_ops.py:1318", "leaky.c:24" with the path shortened, else
 * "libtorch_python.so", "app+0x1234" or the address. The caller frees it.
 */
char *torsh_short_place(const struct frame *frame, const char *directory);

#endif
