/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The lines of `torsh report`'s screen. Each is cut to a number of rows, so that the height of the
 * screen is known. A pipe gets whole lines.
 */
#ifndef TORSH_REPORT_SCREEN_SCREEN_LINE_H
#define TORSH_REPORT_SCREEN_SCREEN_LINE_H

#include <stddef.h>

#include "tools/terminal/style.h"

#define SCREEN_INDENT 9 /* indent of lines below a section's name */

/* Returns the number of rows printed so far, and adds rows printed by others. */
size_t torsh_screen_rows(void);
void torsh_screen_add_rows(size_t n_rows);

/* Print a line of at most n_rows rows. */
void torsh_screen_line(enum text_style style, size_t n_rows, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Begin a section: an empty line, its name, and its most important fact. */
void torsh_screen_section(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print a curve of n values in the order of time, between two texts; label has SCREEN_LABEL. */
#define SCREEN_LABEL 10
void torsh_screen_curve(const char *label, const double *values, size_t n, const char *after);

/* Returns the number of columns of a curve. */
size_t torsh_screen_curve_columns(void);

/*
 * Returns a place ("/a/b/train.py:30") cut to half a row, so that file and line stay. Takes
 * ownership of place; the caller frees the result.
 */
char *torsh_screen_place(char *place);

/*
 * Append ", text" to a list, without the comma if it is empty. Takes ownership of the list, which
 * may be NULL; the caller frees the result.
 */
char *torsh_screen_append(char *list, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
