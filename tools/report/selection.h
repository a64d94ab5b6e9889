/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a report is about, if that is not the whole run: steps, by the recording's schedule or as
 * selected, or a window of time.
 */
#ifndef TORSH_REPORT_SELECTION_H
#define TORSH_REPORT_SELECTION_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/prepass.h"
#include "tools/timeline/window.h"

/*
 * Print a sentence for each process with something left out, or with a schedule that could not be
 * followed.
 */
void torsh_selection_text(FILE *out, const struct prepass *prepass);

/*
 * Write "selection", [{"pid", "rule", "steps", "shown", "ranges": [[FIRST, LAST]],
 * "schedule": {"skip", ...} or null}] of the processes of which something is left out; "window",
 * if the pre-pass is restricted to windows; and "notes", with those about such schedules.
 */
void torsh_selection_members(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n_processes, const struct prepass *prepass);

/* Print a line: the length of the windows, and what they are of. */
void torsh_selection_windows_text(FILE *out, const struct windows *windows);

/*
 * Write a member "window": what was requested, and the spans of each process, [FROM, TO] in ns; TO
 * is null where a span has no end.
 */
void torsh_selection_windows_json(struct json_writer *json, const struct windows *windows);

#endif
