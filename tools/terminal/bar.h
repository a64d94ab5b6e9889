/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bars and curves as text: eighths of a block in a UTF-8 locale, '#' and digits in others. */
#ifndef TORSH_TERMINAL_BAR_H
#define TORSH_TERMINAL_BAR_H

#include <stddef.h>

#define BAR_COLUMNS_MAX 200
#define BAR_TEXT_BYTES (3 * BAR_COLUMNS_MAX + 1)

/*
 * Write a bar of share (0 to 1) of so many columns; more than nothing shows at least an eighth.
 * Returns out, which holds BAR_TEXT_BYTES.
 */
const char *torsh_bar(double share, size_t columns, char *out);

/*
 * Write a character for each of n values, at most BAR_COLUMNS_MAX: its height is its share of the
 * largest one. Returns out, which holds BAR_TEXT_BYTES.
 */
const char *torsh_bar_curve(const double *values, size_t n, char *out);

#endif
