/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/style.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/terminal.h"

static enum style_when chosen;

static const char *const sequences[N_TEXT_STYLES] = {
	[STYLE_PLAIN] = "\033[0m",  [STYLE_HEADING] = "\033[1m",  [STYLE_DIM] = "\033[2m",
	[STYLE_BAD] = "\033[1;31m", [STYLE_WARNING] = "\033[33m", [STYLE_GOOD] = "\033[32m",
	[STYLE_PLACE] = "\033[36m", [STYLE_BAR] = "\033[34m",
};

void torsh_style_set(enum style_when when)
{
	chosen = when;
}

/* Returns false with NO_COLOR (no-color.org), and on a terminal without colours. */
static bool is_welcome(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

bool torsh_style_is_on(FILE *out)
{
	if (!torsh_terminal_is_guarded(out) || chosen == STYLE_NEVER)
		return false;
	return chosen == STYLE_ALWAYS || (torsh_terminal_is(out) && is_welcome());
}

void torsh_style(FILE *out, enum text_style style)
{
	if (torsh_style_is_on(out))
		torsh_terminal_control(out, sequences[style]);
}

void torsh_style_print(FILE *out, enum text_style style, const char *format, ...)
{
	va_list arguments;

	if (style != STYLE_PLAIN)
		torsh_style(out, style);
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	if (style != STYLE_PLAIN)
		torsh_style(out, STYLE_PLAIN);
}
