/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Colours of the reports. They appear on a terminal only: not with NO_COLOR, not with TERM=dumb;
 * --color overrides both.
 */
#ifndef TORSH_TERMINAL_STYLE_H
#define TORSH_TERMINAL_STYLE_H

#include <stdbool.h>
#include <stdio.h>

enum text_style {
	STYLE_PLAIN,
	STYLE_HEADING, /* bold */
	STYLE_DIM, /* what is folded or left out */
	STYLE_BAD, /* red: losses, broken budgets, the worst finding */
	STYLE_WARNING, /* yellow */
	STYLE_GOOD, /* green */
	STYLE_PLACE, /* cyan: file and line */
	STYLE_BAR, /* blue */
	N_TEXT_STYLES
};

enum style_when { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER };

/* Set by --color. */
void torsh_style_set(enum style_when when);

/* Returns true if out gets colours. */
bool torsh_style_is_on(FILE *out);

/* Start a style on out; STYLE_PLAIN ends all. Does nothing if out gets no colours. */
void torsh_style(FILE *out, enum text_style style);

/* Print a text in a style. The text is filtered like all others; only the colours are not. */
void torsh_style_print(FILE *out, enum text_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
