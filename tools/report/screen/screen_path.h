/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The steps' critical path on the screen: its longest chain, and what slows the steps. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_PATH_H
#define TORSH_REPORT_SCREEN_SCREEN_PATH_H

#include "tools/report/overview.h"

/* Print lines below the time's section: nothing without a path. */
void torsh_screen_path(const struct overview *overview);

/* Print the whole path, what would be gained, and what is not known: a section of the page. */
void torsh_path_text(const struct overview *overview);

/* Emit "bottlenecks", "critical_path" and what belongs to them. */
void torsh_path_json(struct json_writer *json, const struct overview *overview);

#endif
