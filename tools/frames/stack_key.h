/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which stacks are one entry of a list. */
#ifndef TORSH_FRAMES_STACK_KEY_H
#define TORSH_FRAMES_STACK_KEY_H

#include "tools/frames/frame_kind.h"

/*
 * Returns the key of a stack, innermost frame first: stacks with equal keys are one entry. The key
 * consists of the innermost frames up to the user's own, and the user's own frames, without the
 * frames of the interpreter and the import machinery, without libraries between own frames, and
 * with one frame of a line that calls its own function again and again. So a call has one key
 * whether CPython has specialised it or not, and a recursion has one, however deep it is.
 * with_lines: two lines of a function are two keys. The caller frees it.
 */
char *torsh_stack_key(const struct frame *const *frames, size_t n, const char *directory,
		      bool with_lines);

/*
 * Returns true if a frame of this kind is part of the key. is_outer: an own frame is inside of it;
 * has_own: the stack has an own frame. Without one all frames are part of the key.
 */
bool torsh_stack_key_has(enum frame_kind kind, bool is_outer, bool has_own);

#endif
