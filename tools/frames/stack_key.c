/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/stack_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"

bool torsh_stack_key_has(enum frame_kind kind, bool is_outer, bool has_own)
{
	if (kind == FRAME_CUT)
		return false;
	if (!has_own)
		return true;
	if (kind == FRAME_INTERPRETER || kind == FRAME_IMPORT)
		return false;
	return !is_outer || kind == FRAME_OWN;
}

static void put_frame(FILE *out, const struct frame *frame, bool with_lines)
{
	const char *place = frame->file ? frame->file : frame->module;

	if (frame->function)
		fprintf(out, "%s\t%s", frame->function, place ? place : "");
	else
		fprintf(out, "+%llx\t%s", (unsigned long long)frame->module_offset,
			place ? place : "");
	if (with_lines && frame->file)
		fprintf(out, ":%d", frame->line);
	fputc('\n', out);
}

static bool is_same(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

/* Returns whether both are the same line of a function, without the frames that are inlined. */
static bool is_recursion(const struct frame *frame, const struct frame *inner)
{
	return inner && frame->module_offset == inner->module_offset &&
	       frame->line == inner->line && is_same(frame->function, inner->function) &&
	       is_same(frame->file, inner->file);
}

char *torsh_stack_key(const struct frame *const *frames, size_t n, const char *directory,
		      bool with_lines)
{
	char *key = NULL;
	size_t n_key = 0;
	FILE *out = torsh_need(open_memstream(&key, &n_key));
	const struct frame *inner = NULL; /* the own one inside of this */
	bool is_outer = false, has_own = torsh_blamed_line(frames, n, directory).is_own;

	for (size_t i = 0; i < n; i++) {
		enum frame_kind kind = torsh_frame_kind(frames[i], directory);

		if (torsh_stack_key_has(kind, is_outer, has_own) &&
		    !(kind == FRAME_OWN && is_recursion(frames[i], inner)))
			put_frame(out, frames[i], with_lines);
		if (kind == FRAME_OWN)
			inner = frames[i];
		is_outer = is_outer || kind == FRAME_OWN;
	}
	if (fclose(out) != 0)
		torsh_need(NULL);
	return key;
}
