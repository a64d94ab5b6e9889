/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The verdict about leaks: the first lines of the screen. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_LEAKS_H
#define TORSH_REPORT_SCREEN_SCREEN_LEAKS_H

#include "tools/memory/growth/growth.h"
#include "tools/report/overview.h"

/*
 * Print "1 leak: 25.0 MiB at leaky.c:25, 64.0 KiB a step"; without leaks what grows from step to
 * step, by its first site if that is named. growth may be NULL.
 */
void torsh_screen_leaks(const struct overview *overview, const struct growth *growth);

/*
 * Returns the line that a site is attributed to, with the user's innermost frame ("leaky.c:24"),
 * or "an unknown line". The caller frees it.
 */
char *torsh_screen_blamed(const struct allocation_site *site);

#endif
