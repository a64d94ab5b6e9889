/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/terminal/bar.h"
#include "tools/terminal/width.h"

#define GAP 2 /* blanks between columns */
#define NAME_WANTED 24 /* whole columns are left out before names become narrower than this */
#define NAME_LEAST 8
#define BAR_COLUMNS 10
#define NOTE_INDENT 4

struct row {
	char **cells; /* n_columns per row */
	char *note; /* printed below the row; NULL: none */
	void (*below)(void *context, FILE *out);
	void *context;
	enum text_style style;
};

/* How a column is laid out. */
struct layout {
	size_t width, unit_width; /* unit_width: the unit of numbers and the blank before it */
	bool is_hidden, is_dropped;
};

struct table {
	const struct table_column *columns;
	struct layout *layouts;
	size_t n_columns, n_filled; /* n_filled: filled cells of the last row */
	struct row *rows;
	size_t n, n_room;
};

struct table *torsh_table_create(const struct table_column *columns, size_t n)
{
	struct table *table = torsh_need(calloc(1, sizeof(*table)));

	table->columns = columns;
	table->n_columns = table->n_filled = n;
	table->layouts = torsh_need(calloc(n, sizeof(*table->layouts)));
	return table;
}

void torsh_table_hide(struct table *table, size_t column)
{
	table->layouts[column].is_hidden = true;
}

/* Fill the next cell. Takes ownership of the text. */
static void put_cell(struct table *table, char *text)
{
	struct row *row;

	if (table->n_filled == table->n_columns) {
		table->rows = torsh_array_reserve(table->rows, table->n, &table->n_room,
						  sizeof(*table->rows));
		table->rows[table->n++] =
			(struct row){.cells = torsh_need(calloc(table->n_columns, sizeof(char *)))};
		table->n_filled = 0;
	}
	row = &table->rows[table->n - 1];
	row->cells[table->n_filled++] = text;
}

static char *format_text(const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		torsh_die("out of memory");
	/* Control characters become blanks: a cell is always one line. */
	for (char *at = text; *at; at++) {
		if (*at == '\n' || *at == '\t')
			*at = '?';
	}
	return text;
}

void torsh_table_cell(struct table *table, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_cell(table, format_text(format, arguments));
	va_end(arguments);
}

void torsh_table_bytes(struct table *table, uint64_t bytes)
{
	char text[SIZE_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_size_human(bytes, text));
}

void torsh_table_time(struct table *table, uint64_t ns)
{
	char text[SIZE_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_size_duration(ns, text));
}

void torsh_table_count(struct table *table, uint64_t n)
{
	char text[SIZE_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_size_grouped(n, text));
}

void torsh_table_percent(struct table *table, double part, double whole)
{
	char text[SIZE_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_size_percent(part, whole, text));
}

void torsh_table_unknown(struct table *table)
{
	torsh_table_cell(table, "-");
}

void torsh_table_bar(struct table *table, double share)
{
	char text[BAR_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_bar(share, BAR_COLUMNS, text));
}

void torsh_table_note(struct table *table, const char *format, ...)
{
	struct row *row = &table->rows[table->n - 1];
	char *note, *both;
	va_list arguments;

	va_start(arguments, format);
	note = format_text(format, arguments);
	va_end(arguments);
	both = row->note ? torsh_need_text("%s\n%s", row->note, note) : note;
	if (row->note) {
		free(row->note);
		free(note);
	}
	row->note = both;
}

void torsh_table_style(struct table *table, enum text_style style)
{
	table->rows[table->n - 1].style = style;
}

void torsh_table_below(struct table *table, void (*print)(void *context, FILE *out), void *context)
{
	struct row *row = &table->rows[table->n - 1];

	row->below = print;
	row->context = context;
}

/* ---- layout ---------------------------------------------------------------------------------- */

/*
 * Returns where the unit of a number begins, with the blank before it; the end of the text if it
 * has none.
 */
static const char *unit_of(const char *text)
{
	const char *blank = strchr(text, ' ');

	return blank ? blank : text + strlen(text);
}

static size_t max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static bool is_shown(const struct table *table, size_t column)
{
	return !table->layouts[column].is_hidden && !table->layouts[column].is_dropped;
}

static void measure_column(struct table *table, size_t column)
{
	struct layout *layout = &table->layouts[column];
	bool is_number = table->columns[column].kind == TABLE_NUMBER;
	size_t number_width = 0, text_width = 0;

	for (size_t i = 0; i < table->n; i++) {
		const char *cell = table->rows[i].cells[column];
		size_t width = torsh_columns_of(cell), unit;

		if (!is_number || strcmp(cell, "-") == 0) {
			text_width = max(text_width, width);
			continue;
		}
		unit = torsh_columns_of(unit_of(cell));
		layout->unit_width = max(layout->unit_width, unit);
		number_width = max(number_width, width - unit);
	}
	layout->width = max(max(text_width, number_width + layout->unit_width),
			    torsh_columns_of(table->columns[column].heading));
	if (table->columns[column].kind == TABLE_BAR)
		layout->width = max(layout->width, BAR_COLUMNS);
}

/* Returns the width of a row; *name is the column that can shrink, n_columns if there is none. */
static size_t row_width(const struct table *table, size_t *name)
{
	size_t width = 0, n = 0;

	*name = table->n_columns;
	for (size_t i = 0; i < table->n_columns; i++) {
		if (!is_shown(table, i))
			continue;
		n++;
		width += table->layouts[i].width;
		if (table->columns[i].kind == TABLE_NAME)
			*name = i;
	}
	return width + (n ? (n - 1) * GAP : 0);
}

/* Leave out the least important column. Returns false if all remaining ones must stay. */
static bool drop_column(struct table *table)
{
	size_t least = table->n_columns;

	for (size_t i = 0; i < table->n_columns; i++) {
		if (!is_shown(table, i) || !table->columns[i].drop)
			continue;
		if (least == table->n_columns ||
		    table->columns[i].drop > table->columns[least].drop)
			least = i;
	}
	if (least == table->n_columns)
		return false;
	table->layouts[least].is_dropped = true;
	return true;
}

static void fit(struct table *table, size_t limit)
{
	size_t name, width = row_width(table, &name), over;

	if (!limit)
		return;
	for (;;) {
		size_t can_give = 0;

		if (name < table->n_columns && table->layouts[name].width > NAME_WANTED)
			can_give = table->layouts[name].width - NAME_WANTED;
		if (width <= limit + can_give || !drop_column(table))
			break;
		width = row_width(table, &name);
	}
	if (width <= limit || name == table->n_columns)
		return;
	over = width - limit;
	table->layouts[name].width = table->layouts[name].width > over + NAME_LEAST
					     ? table->layouts[name].width - over
					     : NAME_LEAST;
}

/* ---- print ----------------------------------------------------------------------------------- */

static void print_blanks(FILE *out, size_t n)
{
	fprintf(out, "%*s", (int)n, "");
}

/* Print a cell, padded unless it is the last of its line. */
static void print_text(FILE *out, const char *text, size_t width, bool is_right, bool is_last)
{
	size_t used = torsh_columns_of(text), blanks = width > used ? width - used : 0;

	if (is_right)
		print_blanks(out, blanks);
	fputs(text, out);
	if (!is_right && !is_last)
		print_blanks(out, blanks);
}

static void print_number(FILE *out, const struct layout *layout, const char *cell, bool is_last)
{
	const char *unit = unit_of(cell);
	size_t used = torsh_columns_of(unit);
	char *number;

	if (strcmp(cell, "-") == 0) {
		print_text(out, cell, layout->width, true, is_last);
		return;
	}
	number = torsh_need_text("%.*s", (int)(unit - cell), cell);
	print_text(out, number, layout->width - layout->unit_width, true, false);
	fputs(unit, out);
	if (!is_last)
		print_blanks(out, layout->unit_width - used);
	free(number);
}

static size_t last_shown(const struct table *table)
{
	size_t last = 0;

	for (size_t i = 0; i < table->n_columns; i++)
		last = is_shown(table, i) ? i : last;
	return last;
}

static void print_cell(FILE *out, const struct table *table, size_t column, const char *cell,
		       bool is_last)
{
	const struct layout *layout = &table->layouts[column];
	char *shown;

	switch (table->columns[column].kind) {
	case TABLE_NUMBER:
		print_number(out, layout, cell, is_last);
		return;
	case TABLE_BAR:
		torsh_style(out, STYLE_BAR);
		fputs(cell, out);
		torsh_style(out, STYLE_PLAIN);
		print_text(out, "", is_last ? 0 : layout->width - torsh_columns_of(cell), false,
			   is_last);
		return;
	default:
		shown = torsh_columns_cut(cell, layout->width, table->columns[column].cut);
		print_text(out, shown, layout->width, false, is_last);
		free(shown);
	}
}

static void print_heading(FILE *out, const struct table *table)
{
	size_t last = last_shown(table);

	torsh_style(out, STYLE_HEADING);
	for (size_t i = 0; i < table->n_columns; i++) {
		if (!is_shown(table, i))
			continue;
		print_text(out, table->columns[i].heading, table->layouts[i].width,
			   table->columns[i].kind == TABLE_NUMBER, i == last);
		if (i != last)
			print_blanks(out, GAP);
	}
	torsh_style(out, STYLE_PLAIN);
	fputc('\n', out);
}

static void print_notes(FILE *out, char *notes, size_t limit)
{
	char *rest = NULL;

	if (!notes)
		return;
	for (char *note = strtok_r(notes, "\n", &rest); note; note = strtok_r(NULL, "\n", &rest)) {
		char *shown = torsh_columns_cut(note, limit ? limit - NOTE_INDENT : 0, CUT_END);

		print_blanks(out, NOTE_INDENT);
		fprintf(out, "%s\n", shown);
		free(shown);
	}
}

static void print_row(FILE *out, const struct table *table, const struct row *row, size_t limit)
{
	size_t last = last_shown(table);

	if (row->style != STYLE_PLAIN)
		torsh_style(out, row->style);
	for (size_t i = 0; i < table->n_columns; i++) {
		if (!is_shown(table, i))
			continue;
		print_cell(out, table, i, row->cells[i] ? row->cells[i] : "", i == last);
		if (i != last)
			print_blanks(out, GAP);
	}
	if (row->style != STYLE_PLAIN)
		torsh_style(out, STYLE_PLAIN);
	fputc('\n', out);
	print_notes(out, row->note, limit);
	if (row->below)
		row->below(row->context, out);
}

static void print_dropped(FILE *out, const struct table *table)
{
	size_t n = 0;

	for (size_t i = 0; i < table->n_columns; i++) {
		if (!table->layouts[i].is_dropped || !*table->columns[i].heading)
			continue;
		if (n++ == 0)
			torsh_style(out, STYLE_DIM);
		fprintf(out, "%s %s", n == 1 ? "not shown at this width:" : ",",
			table->columns[i].heading);
	}
	if (!n)
		return;
	fputs(" (--width 0)", out);
	torsh_style(out, STYLE_PLAIN);
	fputc('\n', out);
}

static void destroy(struct table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		for (size_t k = 0; k < table->n_columns; k++)
			free(table->rows[i].cells[k]);
		free(table->rows[i].cells);
		free(table->rows[i].note);
	}
	free(table->rows);
	free(table->layouts);
	free(table);
}

void torsh_table_print(struct table *table, FILE *out)
{
	size_t limit = torsh_width_limit();

	/* Fill the cells that the caller left empty. */
	while (table->n_filled < table->n_columns)
		put_cell(table, torsh_need(strdup("")));
	for (size_t i = 0; i < table->n_columns; i++)
		measure_column(table, i);
	fit(table, limit);
	print_heading(out, table);
	for (size_t i = 0; i < table->n; i++)
		print_row(out, table, &table->rows[i], limit);
	print_dropped(out, table);
	destroy(table);
}
