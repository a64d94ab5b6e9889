/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The commands that make sense for a recording: below the screen, and what `torsh open` prints. */
#ifndef TORSH_REPORT_SCREEN_NEXT_COMMANDS_H
#define TORSH_REPORT_SCREEN_NEXT_COMMANDS_H

#include "tools/report/overview.h"

#define NEXT_COMMANDS 3u

struct next_command {
	const char *name, *options; /* "html", " -o report.html" */
	const char *why;
};

/* Choose the NEXT_COMMANDS commands for what the recording has. prepass may be NULL. */
void torsh_next_commands(struct next_command commands[NEXT_COMMANDS],
			 const struct overview *overview, const struct prepass *prepass);

/*
 * " PATH" for the recording as a command's argument; "" if it is the one that commands read by
 * themselves here. The caller frees it.
 */
char *torsh_next_path(const struct overview *overview);

#endif
