/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory on the screen: the heap's peak and its sites, the curves, what was alive at the end. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_MEMORY_H
#define TORSH_REPORT_SCREEN_SCREEN_MEMORY_H

#include "tools/report/overview.h"

/* Print the section; nothing if no process has a heap or a resident set. */
void torsh_screen_memory(const struct overview *overview, const struct recorded_process *main);

#endif
