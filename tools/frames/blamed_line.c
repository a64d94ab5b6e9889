/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/blamed_line.h"

static size_t innermost_of(const struct frame *const *frames, size_t n, enum frame_kind kind,
			   const char *directory)
{
	for (size_t i = 0; i < n; i++)
		if (torsh_frame_kind(frames[i], directory) == kind)
			return i;
	return FRAME_NONE;
}

static size_t innermost_own_python(const struct frame *const *frames, size_t n,
				   const char *directory)
{
	for (size_t i = 0; i < n; i++)
		if (frames[i]->is_python && torsh_frame_kind(frames[i], directory) == FRAME_OWN)
			return i;
	return FRAME_NONE;
}

struct blamed_line torsh_blamed_line(const struct frame *const *frames, size_t n,
				     const char *directory)
{
	static const enum frame_kind next_best[] = {FRAME_PACKAGE, FRAME_STANDARD, FRAME_LIBRARY};
	size_t own = innermost_of(frames, n, FRAME_OWN, directory), line;

	if (own != FRAME_NONE) {
		line = innermost_own_python(frames, n, directory);
		return (struct blamed_line){
			.where = line == FRAME_NONE ? own : line, .innermost = own, .is_own = true};
	}
	for (size_t i = 0; i < sizeof(next_best) / sizeof(*next_best) && own == FRAME_NONE; i++)
		own = innermost_of(frames, n, next_best[i], directory);
	if (own == FRAME_NONE && n)
		own = 0;
	return (struct blamed_line){.where = own, .innermost = own};
}
