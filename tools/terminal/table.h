/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The table printer of all reports. It fits the width of the terminal: columns that matter less are
 * left out first, then names are cut. A pipe gets every column and whole names.
 *
 *	static const struct table_column columns[] = {
 *		{"operator", TABLE_NAME, .cut = CUT_MIDDLE},
 *		{"self CPU", TABLE_NUMBER, .drop = 0},
 *		{"", TABLE_BAR, .drop = 1},
 *		{"p99", TABLE_NUMBER, .drop = 3},
 *	};
 *	struct table *table = torsh_table_create(columns, 4);
 *
 *	torsh_table_cell(table, "%s", name);
 *	torsh_table_cell(table, "%s", torsh_size_duration(ns, text));
 *	torsh_table_bar(table, share);
 *	torsh_table_cell(table, "%s", torsh_size_duration(p99_ns, text));
 *	torsh_table_print(table, stdout);
 */
#ifndef TORSH_TERMINAL_TABLE_H
#define TORSH_TERMINAL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/terminal/columns.h"
#include "tools/terminal/style.h"

enum table_kind {
	TABLE_NUMBER, /* "39.9 µs": numbers are aligned at their end, and units in a column */
	TABLE_TEXT, /* aligned to the left, never cut */
	TABLE_NAME, /* takes the remaining width, and is cut to it */
	TABLE_BAR /* a share as a bar */
};

struct table_column {
	const char *heading;
	enum table_kind kind;
	enum text_cut cut; /* of TABLE_NAME */
	unsigned drop; /* the highest is left out first on a narrow terminal; 0: never */
};

struct table;

/* Create a table; columns must stay valid until it is printed. torsh_table_print frees it. */
struct table *torsh_table_create(const struct table_column *columns, size_t n);

/* Leave out a column, because it has no values in this recording. */
void torsh_table_hide(struct table *table, size_t column);

/* Fill the next cell; after the last column the next row begins. Hidden columns take cells, too. */
void torsh_table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Fill the next cell with a size, a time, a count, a share of a whole, or "-" for an unknown
 * value.
 */
void torsh_table_bytes(struct table *table, uint64_t bytes);
void torsh_table_time(struct table *table, uint64_t ns);
void torsh_table_count(struct table *table, uint64_t n);
void torsh_table_percent(struct table *table, double part, double whole);
void torsh_table_unknown(struct table *table);

/* Fill the next cell, in a TABLE_BAR column: share is 0 to 1. */
void torsh_table_bar(struct table *table, double share);

/* Print a line below the last row, indented. */
void torsh_table_note(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print the last row in a style. */
void torsh_table_style(struct table *table, enum text_style style);

/* Call print below the last row, for further lines of that row, such as a stack. */
void torsh_table_below(struct table *table, void (*print)(void *context, FILE *out), void *context);

/* Print headings and rows, then name the columns that were left out; frees the table. */
void torsh_table_print(struct table *table, FILE *out);

#endif
