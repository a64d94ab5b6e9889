/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/folded_stack.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"

#define LEAST_ROWS 5 /* two attributed lines, and the folded runs around and between them */
#define NAME_BYTES 64
#define MOST_NAMES 16 /* upper bound of distinct names counted in a folded row */

static bool is_blamed(const struct folded_stack *stack, size_t frame)
{
	return frame == stack->blamed.where || frame == stack->blamed.innermost;
}

/* Join each run of folded rows into one row. */
static void join(struct folded_stack *stack)
{
	size_t n = 0;

	for (size_t i = 0; i < stack->n; i++) {
		if (n && stack->rows[n - 1].is_folded && stack->rows[i].is_folded)
			stack->rows[n - 1].n += stack->rows[i].n;
		else
			stack->rows[n++] = stack->rows[i];
	}
	stack->n = n;
}

/*
 * Returns the outermost row that is not an attributed line: first of rows that are not the user's,
 * then of all.
 */
static struct folded_row *least_wanted(const struct folded_stack *stack,
				       const struct frame *const *frames, const char *directory)
{
	for (int pass = 0; pass < 2; pass++) {
		bool is_own_too = pass > 0;

		for (size_t i = stack->n; i-- > 0;) {
			struct folded_row *row = &stack->rows[i];

			if (!row->is_folded && !is_blamed(stack, row->first) &&
			    (is_own_too ||
			     torsh_frame_kind(frames[row->first], directory) != FRAME_OWN))
				return row;
		}
	}
	return NULL;
}

/* A single folded frame takes as much space as the row that would replace it: show it. */
static void unfold_single(struct folded_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		stack->rows[i].is_folded = stack->rows[i].is_folded && stack->rows[i].n > 1;
}

void torsh_folded_stack(struct folded_stack *stack, const struct frame *const *frames, size_t n,
			size_t max_rows, const char *directory)
{
	struct folded_row *row;

	*stack = (struct folded_stack){
		.rows = torsh_need_items(NULL, 0, n, sizeof(*stack->rows)),
		.n = n,
		.blamed = torsh_blamed_line(frames, n, directory),
	};
	for (size_t i = 0; i < n; i++) {
		enum frame_kind kind = torsh_frame_kind(frames[i], directory);

		stack->rows[i] = (struct folded_row){
			.first = i,
			.n = 1,
			.is_folded =
				max_rows && torsh_frame_is_plumbing(kind) && !is_blamed(stack, i),
			.is_marked = stack->blamed.is_own && i == stack->blamed.innermost,
		};
	}
	if (!max_rows)
		return;
	if (max_rows < LEAST_ROWS)
		max_rows = LEAST_ROWS;
	join(stack);
	while (stack->n > max_rows && (row = least_wanted(stack, frames, directory))) {
		row->is_folded = true;
		join(stack);
	}
	unfold_single(stack);
}

void torsh_folded_stack_free(struct folded_stack *stack)
{
	free(stack->rows);
	*stack = (struct folded_stack){0};
}

/* Returns the name of a folded frame within its run. */
static void name_of(const struct frame *frame, const char *directory, char *out)
{
	static const char *const names[] = {
		[FRAME_OWN] = "your code",
		[FRAME_STANDARD] = "Python's library",
		[FRAME_IMPORT] = "importlib",
		[FRAME_INTERPRETER] = "Python",
		[FRAME_CXX] = "C++ templates",
		[FRAME_C_LIBRARY] = "the C library",
		[FRAME_AGENT] = "torsh",
		[FRAME_CUT] = "an unknown caller",
		[FRAME_PACKAGE] = "generated code",
		[FRAME_LIBRARY] = "libraries",
	};
	enum frame_kind kind = torsh_frame_kind(frame, directory);

	if ((kind == FRAME_PACKAGE || kind == FRAME_LIBRARY) &&
	    torsh_frame_package(frame, out, NAME_BYTES))
		return;
	strcpy(out, names[kind]);
}

struct named_frames {
	char name[NAME_BYTES];
	size_t n;
};

/* Count the frames of a row by name, most frequent first. Returns the number of names. */
static size_t count_names(const struct folded_row *row, const struct frame *const *frames,
			  const char *directory, struct named_frames counted[MOST_NAMES])
{
	size_t n = 0;

	for (size_t i = row->first; i < row->first + row->n; i++) {
		char name[NAME_BYTES];
		size_t k = 0;

		name_of(frames[i], directory, name);
		while (k < n && strcmp(counted[k].name, name) != 0)
			k++;
		if (k == MOST_NAMES)
			continue;
		if (k == n) {
			counted[n] = (struct named_frames){0};
			strcpy(counted[n++].name, name);
		}
		for (counted[k].n++; k && counted[k].n > counted[k - 1].n; k--) {
			struct named_frames other = counted[k - 1];

			counted[k - 1] = counted[k];
			counted[k] = other;
		}
	}
	return n;
}

char *torsh_folded_text(const struct folded_row *row, const struct frame *const *frames,
			const char *directory)
{
	struct named_frames counted[MOST_NAMES];
	size_t n = count_names(row, frames, directory, counted);
	char frames_text[SIZE_TEXT_BYTES];
	const char *n_frames = torsh_size_counted(row->n, "frame", frames_text);

	if (n == 1)
		return torsh_need_text("… %s of %s", n_frames, counted[0].name);
	if (n == 2)
		return torsh_need_text("… %s of %s and %s", n_frames, counted[0].name,
				       counted[1].name);
	return torsh_need_text("… %s of %s, %s and others", n_frames, counted[0].name,
			       counted[1].name);
}
