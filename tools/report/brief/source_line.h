/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A line of a source file, as it is on this machine. */
#ifndef TORSH_REPORT_BRIEF_SOURCE_LINE_H
#define TORSH_REPORT_BRIEF_SOURCE_LINE_H

#include <stdint.h>

#define SOURCE_LINE_MAX 160u /* bytes that are returned */

/*
 * Returns the text of a line, counted from 1, without its indentation; the caller frees it. NULL:
 * *reason is why not, in words. A file that was changed after until_ns (CLOCK_REALTIME) may have
 * another text there, and isn't quoted.
 */
char *torsh_source_line(const char *path, int line, uint64_t until_ns, const char **reason);

#endif
