/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The rows of a printed stack: a run of frames that a reader skips is one row, and a long stack
 * shows the user's own frames and the innermost ones.
 */
#ifndef TORSH_FRAMES_FOLDED_STACK_H
#define TORSH_FRAMES_FOLDED_STACK_H

#include "tools/frames/blamed_line.h"

#define FOLDED_ROWS 8 /* per stack, unless all are wanted */

struct folded_row {
	size_t first, n; /* frames; n is 1 unless it is folded */
	bool is_folded, is_marked; /* marked: the innermost own frame */
};

struct folded_stack {
	struct folded_row *rows;
	size_t n;
	struct blamed_line blamed;
};

/*
 * Fold frames, innermost first, into at most max_rows (at least 5); 0: a row per frame. The
 * attributed lines always have rows of their own. The caller frees the rows with
 * torsh_folded_stack_free.
 */
void torsh_folded_stack(struct folded_stack *stack, const struct frame *const *frames, size_t n,
			size_t max_rows, const char *directory);

/* Free the rows. */
void torsh_folded_stack_free(struct folded_stack *stack);

/*
 * Returns "… 42 frames of importlib", "… 3 frames of Python and the C library". The caller frees
 * it.
 */
char *torsh_folded_text(const struct folded_row *row, const struct frame *const *frames,
			const char *directory);

#endif
