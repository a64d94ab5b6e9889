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
	TABLE_NUMBER, /* "39.9 µs": numbers end in one column, and units stand in one */
	TABLE_TEXT, /* begins at the left, is never cut */
	TABLE_NAME, /* takes what is left; cut where that is too little */
	TABLE_BAR /* a share as a bar */
};

struct table_column {
	const char *heading;
	enum table_kind kind;
	enum text_cut cut; /* of TABLE_NAME */
	unsigned drop; /* the highest is left out first where the width is small; 0: never */
};

struct table;

/* columns stay the caller's until the table is printed. Free with torsh_table_print. */
struct table *torsh_table_create(const struct table_column *columns, size_t n);

/* Leave a column out: it has no values in this recording. */
void torsh_table_hide(struct table *table, size_t column);

/* Fill the next cell; after the last column the next row begins. Hidden columns take cells, too. */
void torsh_table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a size, a time, a count, a share of a whole, and "-" for what is not known. */
void torsh_table_bytes(struct table *table, uint64_t bytes);
void torsh_table_time(struct table *table, uint64_t ns);
void torsh_table_count(struct table *table, uint64_t n);
void torsh_table_percent(struct table *table, double part, double whole);
void torsh_table_unknown(struct table *table);

/* The same for a column of TABLE_BAR: share is 0 to 1. */
void torsh_table_bar(struct table *table, double share);

/* Print a line below the last row, indented. */
void torsh_table_note(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print the last row in a style. */
void torsh_table_style(struct table *table, enum text_style style);

/* Call print below the last row, for what a row holds besides: a stack. */
void torsh_table_below(struct table *table, void (*print)(void *context, FILE *out), void *context);

/* Print heading and rows, and the columns that were left out; frees the table. */
void torsh_table_print(struct table *table, FILE *out);

#endif
