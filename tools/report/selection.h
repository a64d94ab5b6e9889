/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of a run that a report covers: steps, by the recording's schedule or as selected, or a
 * window of time.
 */
#ifndef TORSH_REPORT_SELECTION_H
#define TORSH_REPORT_SELECTION_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/prepass.h"
#include "tools/timeline/window.h"

/*
 * Print a sentence for each process with something left out, or with a schedule that it did not
 * keep to.
 */
void torsh_selection_text(FILE *out, const struct prepass *prepass);

/*
 * Emit "selection", [{"pid", "rule", "steps", "shown", "ranges": [[FIRST, LAST]],
 * "schedule": {"skip", ...} or null}] of the processes with something left out; "window", if
 * the pre-pass is restricted to windows; and "notes", about schedules.
 */
void torsh_selection_members(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n_processes, const struct prepass *prepass);

/* Print a line: the length of the windows, and how they were selected. */
void torsh_selection_windows_text(FILE *out, const struct windows *windows);

/*
 * Emit a member "window": the request, and the spans of each process, [FROM, TO] in ns; TO is null
 * for a span without an end.
 */
void torsh_selection_windows_json(struct json_writer *json, const struct windows *windows);

#endif
