/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/terminal/bar.h"
#include "tools/terminal/columns.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/width.h"

#define CURVE_COLUMNS_MAX 100
#define CURVE_MARGIN 28 /* columns of the texts around the curve */
#define ROW_SLACK 16 /* columns that a row may lose by folding at a word */

static size_t n_rows_printed;

size_t torsh_screen_rows(void)
{
	return n_rows_printed;
}

void torsh_screen_add_rows(size_t n_rows)
{
	n_rows_printed += n_rows;
}

static char *format_text(const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		torsh_die("no memory left");
	torsh_terminal_clean(text);
	return text;
}

/* Print text in a style, cut to n_rows rows of which the first has `used` columns taken. */
static void print_cut(enum text_style style, size_t n_rows, size_t used, const char *text)
{
	size_t limit = torsh_width_limit(), columns = limit * n_rows - (n_rows - 1) * ROW_SLACK;
	char *cut = torsh_columns_cut(text, limit && columns > used ? columns - used : 0, CUT_END);

	torsh_style_print(stdout, style, "%s", cut);
	putchar('\n');
	n_rows_printed += limit ? 1 + (used + torsh_columns_of(cut) - 1) / limit : 1;
	free(cut);
}

void torsh_screen_line(enum text_style style, size_t n_rows, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	print_cut(style, n_rows, 0, text);
	free(text);
}

void torsh_screen_section(const char *name, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	putchar('\n');
	n_rows_printed++;
	torsh_style_print(stdout, STYLE_HEADING, "%-*s", SCREEN_INDENT, name);
	print_cut(STYLE_PLAIN, 2, SCREEN_INDENT, text);
	free(text);
}

size_t torsh_screen_curve_columns(void)
{
	size_t columns = torsh_width_columns();

	columns = columns > CURVE_MARGIN + SCREEN_INDENT + SCREEN_LABEL
			  ? columns - CURVE_MARGIN - SCREEN_INDENT - SCREEN_LABEL
			  : SCREEN_LABEL;
	return columns < CURVE_COLUMNS_MAX ? columns : CURVE_COLUMNS_MAX;
}

void torsh_screen_curve(const char *label, const double *values, size_t n, const char *after)
{
	char curve[BAR_TEXT_BYTES];

	printf("%*s%-*s", SCREEN_INDENT, "", SCREEN_LABEL, label);
	torsh_style_print(stdout, STYLE_BAR, "%s", torsh_bar_curve(values, n, curve));
	printf("  %s\n", after);
	n_rows_printed++;
}

char *torsh_screen_place(char *place)
{
	char *cut = torsh_columns_cut(place, torsh_width_limit() / 2, CUT_START);

	free(place);
	return cut;
}

char *torsh_screen_append(char *list, const char *format, ...)
{
	va_list arguments;
	char *text, *longer;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	if (!list)
		return text;
	longer = torsh_need_text("%s, %s", list, text);
	free(list);
	free(text);
	return longer;
}
