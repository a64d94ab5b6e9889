/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The few lines on stderr at the end of a session.
 */
#ifndef TORSH_WRITER_OUTPUT_SUMMARY_H
#define TORSH_WRITER_OUTPUT_SUMMARY_H

#include <stdio.h>

#include "tools/writer/threads/drain.h"

/* After torsh_drain_stop. Nothing when no process said hello. */
void torsh_summary_print(FILE *out, const struct drain *drain, const char *recording);

#endif
