/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* UTF-8 texts as columns of a terminal: their width, and how they are cut to fit. */
#ifndef TORSH_TERMINAL_COLUMNS_H
#define TORSH_TERMINAL_COLUMNS_H

#include <stddef.h>

/* The part of a text that is cut if it is too long. The cut is marked by "…" or "...". */
enum text_cut {
	CUT_END, /* "aten::convolution_ba…" */
	CUT_MIDDLE, /* "autograd::eng…ReluBackward0" */
	CUT_START /* "…project/train.py:30": file and line stay */
};

/*
 * Returns how many bytes the character, the escape sequence or the invalid byte at text takes, and
 * adds its columns to *columns: 0 to 2. n > 0.
 */
size_t torsh_columns_step(const char *text, size_t n, size_t *columns);

/* Returns how many columns a text takes. */
size_t torsh_columns_of(const char *text);

/*
 * Returns a copy of text that takes at most so many columns; the caller frees it. columns 0: a copy
 * of the whole text.
 */
char *torsh_columns_cut(const char *text, size_t columns, enum text_cut cut);

#endif
