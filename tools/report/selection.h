/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The steps that a report is about, if these are not all: by the recording's schedule, or as
 * selected.
 */
#ifndef TORSH_REPORT_SELECTION_H
#define TORSH_REPORT_SELECTION_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/prepass.h"

/*
 * Print a sentence for each process with something left out, or with a schedule that could not be
 * followed.
 */
void torsh_selection_text(FILE *out, const struct prepass *prepass);

/*
 * Write two members: "selection", [{"pid", "rule", "steps", "shown", "ranges": [[FIRST, LAST]],
 * "schedule": {"skip", ...} or null}] of the processes of which something is left out; and "notes",
 * with those about such schedules.
 */
void torsh_selection_members(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n_processes, const struct prepass *prepass);

#endif
