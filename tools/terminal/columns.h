/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Texts in UTF-8 as columns of a terminal: how many they take, and how they are cut to fit. */
#ifndef TORSH_TERMINAL_COLUMNS_H
#define TORSH_TERMINAL_COLUMNS_H

#include <stddef.h>

/* Where a text that is too long loses its middle part. The cut is marked by "…" or "...". */
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
