/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The line that a stack is attributed to: the innermost of the user's own code. */
#ifndef TORSH_FRAMES_BLAMED_LINE_H
#define TORSH_FRAMES_BLAMED_LINE_H

#include "tools/frames/frame_kind.h"

#define FRAME_NONE SIZE_MAX

struct blamed_line {
	size_t where; /* the user's innermost line of Python, else the innermost own frame */
	size_t innermost; /* the user's innermost frame, of Python, C or C++ */
	bool is_own; /* false: the stack has no own frame, and both are the best of the others */
};

/*
 * Returns the line that frames, innermost first, are attributed to, as indices; FRAME_NONE without
 * frames. If no frame is the user's own, it is the innermost line of a package, else of the
 * standard library, else of a native library, else the innermost frame.
 */
struct blamed_line torsh_blamed_line(const struct frame *const *frames, size_t n,
				     const char *directory);

#endif
