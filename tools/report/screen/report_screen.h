/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `torsh report` on one screen of SCREEN_ROWS rows: the verdict, memory, time, devices, findings,
 * what is missing, and the next commands. `torsh report -v` prints the whole page.
 */
#ifndef TORSH_REPORT_SCREEN_REPORT_SCREEN_H
#define TORSH_REPORT_SCREEN_REPORT_SCREEN_H

#include "tools/report/overview.h"

#define SCREEN_ROWS 50

/*
 * Print the screen on stdout. prepass: NULL if the timeline was not read. Of the overview's lists
 * only the leaks are used. Dies if the recording cannot be read.
 */
void torsh_screen_print(const struct overview *overview, const struct prepass *prepass);

/* Print the verdict, and the commands that apply to the recording, with reasons. */
void torsh_screen_open(const struct overview *overview, const struct prepass *prepass);

#endif
