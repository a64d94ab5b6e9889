/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The commands that apply to a recording: below the screen, and as printed by `torsh open`. */
#ifndef TORSH_REPORT_SCREEN_NEXT_COMMANDS_H
#define TORSH_REPORT_SCREEN_NEXT_COMMANDS_H

#include "tools/report/overview.h"

#define NEXT_COMMANDS 3u

struct next_command {
	const char *name, *options; /* "html", " -o report.html" */
	const char *why;
};

/* Choose NEXT_COMMANDS commands that apply to the recording. prepass may be NULL. */
void torsh_next_commands(struct next_command commands[NEXT_COMMANDS],
			 const struct overview *overview, const struct prepass *prepass);

/*
 * Returns " PATH" for the recording as a command's argument; "" if commands read it by default in
 * this directory. The caller frees it.
 */
char *torsh_next_path(const struct overview *overview);

#endif
