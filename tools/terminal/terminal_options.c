/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/terminal_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/page.h"
#include "tools/terminal/style.h"
#include "tools/terminal/width.h"

#define WIDTH_MAX 10000

enum { KEY_COLOR = 0x7000, KEY_WIDTH, KEY_NO_PAGER };

static const struct argp_option options_terminal[] = {
	{"color", KEY_COLOR, "WHEN", 0,
	 "auto (default): on a terminal, unless NO_COLOR is set; always; never", -2},
	{"width", KEY_WIDTH, "N", 0,
	 "lines of at most N columns; 0: of any length (default: as wide as the terminal, any length in a pipe)",
	 -2},
	{"no-pager", KEY_NO_PAGER, NULL, 0,
	 "don't show what is longer than the screen in TORSH_PAGER, PAGER or less", -2},
	{0},
};

static const char *const when_names[] = {
	[STYLE_AUTO] = "auto", [STYLE_ALWAYS] = "always", [STYLE_NEVER] = "never"};

static void set_color(struct argp_state *state, const char *text)
{
	for (int i = STYLE_AUTO; i <= STYLE_NEVER; i++) {
		if (strcmp(text, when_names[i]) == 0) {
			torsh_style_set((enum style_when)i);
			return;
		}
	}
	argp_error(state, "--color takes auto, always or never, not \"%s\"", text);
}

static void set_width(struct argp_state *state, const char *text)
{
	char *end;
	unsigned long columns;

	errno = 0;
	columns = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || columns > WIDTH_MAX)
		argp_error(state, "--width takes a number of columns up to %d, not \"%s\"",
			   WIDTH_MAX, text);
	torsh_width_set(columns);
}

static error_t parse_terminal(int key, char *argument, struct argp_state *state)
{
	switch (key) {
	case KEY_COLOR:
		set_color(state, argument);
		return 0;
	case KEY_WIDTH:
		set_width(state, argument);
		return 0;
	case KEY_NO_PAGER:
		torsh_page_without_pager();
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp torsh_terminal_argp = {.options = options_terminal, .parser = parse_terminal};

const struct argp_child torsh_terminal_children[] = {{.argp = &torsh_terminal_argp}, {0}};
