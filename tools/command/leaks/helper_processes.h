/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The processes that a user's command went through: shells and small programs of the system. Their
 * leaks are one line of the text, and never stand before those of the user's program.
 */
#ifndef TORSH_COMMAND_LEAKS_HELPER_PROCESSES_H
#define TORSH_COMMAND_LEAKS_HELPER_PROCESSES_H

#include "tools/command/leaks/leaks_view.h"

/*
 * Take the leaks of helper processes out of the view's leaks, and sum them up in view->helpers. A
 * process is one only where another one is none: a shell that was recorded alone is the user's.
 */
void torsh_helper_processes_fold(struct leaks_view *view);

/* Print the line for them, on stdout. Prints nothing if there are none. */
void torsh_helper_processes_print(const struct helper_leaks *helpers);

#endif
