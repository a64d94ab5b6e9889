/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The screen that standard output is shown on. Values are read once, on the first call. */
#ifndef TORSH_TERMINAL_WIDTH_H
#define TORSH_TERMINAL_WIDTH_H

#include <stdbool.h>
#include <stddef.h>

/* Set by --width: 0 for lines of any length. */
void torsh_width_set(size_t columns);

/*
 * Returns the most columns that a line may take, or 0 for lines of any length: --width, else the
 * width of the terminal, else COLUMNS, else 80. Without --width a pipe or a file is not limited.
 */
size_t torsh_width_limit(void);

/* Returns the columns to lay out for: the limit, else COLUMNS, else 80. Never 0. */
size_t torsh_width_columns(void);

/* Returns the rows of the terminal; 0 if standard output is none or its size is unknown. */
size_t torsh_width_rows(void);

/* Returns true if the locale is UTF-8 (LC_ALL, LC_CTYPE, LANG). */
bool torsh_width_has_utf8(void);

#endif
