/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the parts of the exporter for Chrome's JSON share. */
#ifndef TORSH_EXPORT_CHROME_H
#define TORSH_EXPORT_CHROME_H

#include "tools/export/texts.h"

/* Everything before the first event. */
void torsh_chrome_put_header(struct trace *trace);

/* Names of a process and its threads, and its steps as slices. */
void torsh_chrome_put_process(struct trace *trace, const struct profile_process *process);

#endif
