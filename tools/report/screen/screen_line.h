/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The lines of the screen that `torsh report` prints: each is cut to the rows that it may take, so
 * that the screen has a known height. A pipe gets whole lines.
 */
#ifndef TORSH_REPORT_SCREEN_SCREEN_LINE_H
#define TORSH_REPORT_SCREEN_SCREEN_LINE_H

#include <stddef.h>

#include "tools/terminal/style.h"

#define SCREEN_INDENT 9 /* of what is below a section's name */

/* Rows that were printed, and rows that something else printed. */
size_t torsh_screen_rows(void);
void torsh_screen_add_rows(size_t n_rows);

/* Print a line that takes so many rows at most. */
void torsh_screen_line(enum text_style style, size_t n_rows, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Begin a section: an empty line, its name, and what is most important about it. */
void torsh_screen_section(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print a curve of n values in the order of time, between two texts; label has SCREEN_LABEL. */
#define SCREEN_LABEL 10
void torsh_screen_curve(const char *label, const double *values, size_t n, const char *after);

/* Returns the columns that a curve takes. */
size_t torsh_screen_curve_columns(void);

/*
 * Returns a place ("/a/b/train.py:30") cut to half a row, so that file and line stay. Takes it; the
 * caller frees the result.
 */
char *torsh_screen_place(char *place);

/*
 * Append ", text" to a list, without the comma where it is empty. Takes the list, which may be
 * NULL; the caller frees the result.
 */
char *torsh_screen_append(char *list, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
