/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/terminal/columns.h"
#include "tools/terminal/pager.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/width.h"

struct bytes {
	char *items;
	size_t n, n_room;
};

static struct {
	struct bytes line; /* the last, incomplete line */
	struct bytes held; /* rows that are not written yet */
	size_t columns; /* width of the screen; 0: unlimited */
	size_t n_rows, rows; /* rows so far and of the screen; rows == 0: all are written at once */
	int fd;
	bool folds, is_deaf; /* is_deaf: the pager has ended, so that the rest is dropped */
	bool has_failed;
} page = {.fd = STDOUT_FILENO};

static bool is_without_pager;

void torsh_page_without_pager(void)
{
	is_without_pager = true;
}

static void append(struct bytes *bytes, const char *text, size_t n)
{
	if (bytes->n + n > bytes->n_room) {
		bytes->n_room = 2 * (bytes->n + n);
		bytes->items = torsh_need(realloc(bytes->items, bytes->n_room));
	}
	memcpy(bytes->items + bytes->n, text, n);
	bytes->n += n;
}

static void flush_held(void)
{
	size_t n = page.held.n;

	page.held.n = 0;
	if (page.is_deaf || page.has_failed || !n ||
	    torsh_terminal_write_all(page.fd, page.held.items, n) == 0)
		return;
	/* It is no error if the user leaves the pager early. */
	page.is_deaf = page.fd != STDOUT_FILENO;
	page.has_failed = !page.is_deaf;
}

static void put_row(size_t indent, const char *text, size_t n)
{
	/* The shell's prompt takes the last row of the screen. */
	if (page.rows && ++page.n_rows >= page.rows) {
		int fd = torsh_pager_start();

		page.fd = fd >= 0 ? fd : page.fd;
		page.rows = 0;
	}
	while (indent--)
		append(&page.held, " ", 1);
	append(&page.held, text, n);
}

/*
 * Returns the bytes of the row that begins at text: up to the last blank that fits. *next: the
 * start of the next row.
 */
static size_t row_bytes(const char *text, size_t n, size_t columns, size_t *next)
{
	size_t used = 0, i = 0, n_row = 0;
	bool has_word = false;

	*next = n;
	while (i < n) {
		size_t n_bytes = torsh_columns_step(text + i, n - i, &used);

		if (used > columns)
			break;
		if (text[i] != ' ')
			has_word = true;
		else if (has_word && i + 1 < n && text[i + 1] != ' ')
			n_row = i;
		i += n_bytes;
	}
	if (i == n)
		return n;
	if (text[i] == ' ')
		n_row = i;
	if (!n_row) { /* a single word wider than the screen */
		*next = i ? i : 1;
		return *next;
	}
	for (*next = n_row; *next < n && text[*next] == ' ';)
		++*next;
	while (n_row && text[n_row - 1] == ' ')
		n_row--;
	return n_row;
}

static size_t leading_blanks(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && text[i] == ' ')
		i++;
	return i;
}

/* Print a line in as many rows as it needs. is_whole: with a line feed. */
static void put_line(const char *text, size_t n, bool is_whole)
{
	size_t hang = leading_blanks(text, n) + 2, indent = 0, next;

	if (!page.folds || !page.columns) {
		put_row(0, text, n + is_whole);
		return;
	}
	if (hang > page.columns / 2)
		hang = page.columns / 2;
	do {
		size_t n_row = row_bytes(text, n, page.columns - indent, &next);

		put_row(indent, text, next < n ? n_row : n_row + is_whole);
		if (next < n)
			append(&page.held, "\n", 1);
		text += next;
		n -= next;
		indent = hang;
	} while (n);
}

static int write_page(const char *bytes, size_t n)
{
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t n_part = end ? (size_t)(end - bytes) + 1 : n;

		append(&page.line, bytes, n_part);
		bytes += n_part;
		n -= n_part;
		if (!end)
			break;
		put_line(page.line.items, page.line.n - 1, true);
		page.line.n = 0;
	}
	if (!page.rows)
		flush_held();
	return page.has_failed ? -1 : 0;
}

static void end_page(void)
{
	fflush(stdout);
	if (page.line.n)
		put_line(page.line.items, page.line.n, false);
	flush_held();
	torsh_pager_end();
	free(page.line.items);
	free(page.held.items);
	page.line = page.held = (struct bytes){0};
}

void torsh_page_begin(bool is_prose)
{
	static bool has_begun;

	page.folds = is_prose;
	if (has_begun)
		return;
	has_begun = true;
	page.columns = torsh_width_limit();
	page.rows = is_without_pager ? 0 : torsh_width_rows();
	if (!page.rows && !page.columns)
		return;
	torsh_terminal_pass(write_page);
	atexit(end_page);
}
