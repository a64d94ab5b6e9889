/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/columns.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"
#include "tools/terminal/width.h"

/* Returns the columns of a character by the C library's table; 1 without a UTF-8 locale. */
static size_t columns_of_character(uint32_t character)
{
	static locale_t locale;
	static bool is_tried;
	locale_t before;
	int n;

	if (character < 0x300)
		return 1;
	if (!is_tried)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	is_tried = true;
	if (!locale)
		return 1;
	before = uselocale(locale);
	n = wcwidth((wchar_t)character);
	uselocale(before);
	return n < 0 ? 1 : (size_t)n;
}

/* Returns the length in bytes of "ESC [ ... letter"; 1 for another ESC. */
static size_t bytes_of_escape(const char *text, size_t n)
{
	size_t i = 2;

	if (n < 3 || text[1] != '[')
		return 1;
	while (i < n && (text[i] < '@' || text[i] > '~'))
		i++;
	return i < n ? i + 1 : n;
}

size_t torsh_columns_step(const char *text, size_t n, size_t *columns)
{
	size_t n_bytes;

	if (*text == '\033')
		return bytes_of_escape(text, n);
	n_bytes = torsh_utf8_bytes(text, n);
	*columns += n_bytes ? columns_of_character(torsh_utf8_character(text, n_bytes)) : 1;
	return n_bytes ? n_bytes : 1;
}

size_t torsh_columns_of(const char *text)
{
	size_t columns = 0, n = strlen(text);

	for (size_t i = 0; i < n;)
		i += torsh_columns_step(text + i, n - i, &columns);
	return columns;
}

/* Returns how many bytes at the beginning of text take at most so many columns. */
static size_t bytes_within(const char *text, size_t columns)
{
	size_t n = strlen(text), i = 0, used = 0;

	while (i < n) {
		size_t n_bytes = torsh_columns_step(text + i, n - i, &used);

		if (used > columns)
			break;
		i += n_bytes;
	}
	return i;
}

/* Returns the start of the longest end of text that takes at most so many columns. */
static const char *end_within(const char *text, size_t columns)
{
	size_t all = torsh_columns_of(text), n = strlen(text), i = 0, skipped = 0;

	while (i < n && all - skipped > columns)
		i += torsh_columns_step(text + i, n - i, &skipped);
	return text + i;
}

char *torsh_columns_cut(const char *text, size_t columns, enum text_cut cut)
{
	const char *mark = torsh_width_has_utf8() ? "…" : "...";
	size_t n_mark = torsh_columns_of(mark), n_start, n_end;

	if (!columns || torsh_columns_of(text) <= columns)
		return torsh_need(strdup(text));
	if (columns <= n_mark) {
		mark = "";
		n_mark = 0;
	}
	n_end = cut == CUT_END ? 0 : columns - n_mark;
	if (cut == CUT_MIDDLE)
		n_end = (columns - n_mark + 1) / 2;
	n_start = columns - n_mark - n_end;
	return torsh_need_text("%.*s%s%s", (int)bytes_within(text, n_start), text, mark,
			       end_within(text, n_end));
}
