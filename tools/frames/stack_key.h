/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which stacks are one entry of a list. */
#ifndef TORSH_FRAMES_STACK_KEY_H
#define TORSH_FRAMES_STACK_KEY_H

#include "tools/frames/frame_kind.h"

/*
 * The key of a stack, innermost frame first: stacks with equal keys are one entry. It has the
 * innermost frames up to the user's own, the user's own frames, and neither those of the
 * interpreter and the import machinery nor of the libraries between the user's frames. So calls
 * that CPython has specialised, and those that it has not, have one key. with_lines: two lines of
 * a function are two keys. The caller frees it.
 */
char *torsh_stack_key(const struct frame *const *frames, size_t n, const char *directory,
		      bool with_lines);

/*
 * Returns true if a frame of this kind is part of the key. is_outer: an own frame stands inside of
 * it; has_own: the stack has an own frame. Without one all frames are part of it.
 */
bool torsh_stack_key_has(enum frame_kind kind, bool is_outer, bool has_own);

#endif
