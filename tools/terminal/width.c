/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/width.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/terminal/terminal.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_LEAST 20 /* narrower screens are treated as this wide */

static size_t set_columns;
static bool is_set;

void torsh_width_set(size_t columns)
{
	is_set = true;
	set_columns = columns && columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

/* Returns the number in an environment variable; 0 if it has none. */
static size_t number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 10) : 0;
}

static size_t columns_of_terminal(void)
{
	struct winsize size = {0};
	size_t columns;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		columns = size.ws_col;
	else
		columns = number_of("COLUMNS");
	if (!columns)
		columns = COLUMNS_DEFAULT;
	return columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

size_t torsh_width_limit(void)
{
	static size_t columns;

	if (is_set)
		return set_columns;
	if (!columns && torsh_terminal_is(stdout))
		columns = columns_of_terminal();
	return columns;
}

size_t torsh_width_columns(void)
{
	size_t limit = torsh_width_limit();

	return limit ? limit : columns_of_terminal();
}

size_t torsh_width_rows(void)
{
	struct winsize size = {0};

	if (!torsh_terminal_is(stdout))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row
									   : number_of("LINES");
}

bool torsh_width_has_utf8(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *name = getenv(variables[i]);

		if (name && *name)
			return strcasestr(name, "utf-8") || strcasestr(name, "utf8");
	}
	return false;
}
