/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which steps a report is about, where these are not all: by the schedule of the recording, or as
 * was asked for.
 */
#ifndef TORSH_REPORT_SELECTION_H
#define TORSH_REPORT_SELECTION_H

#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/prepass.h"

/*
 * A sentence for each process of which something is left out, or whose schedule could not be kept
 * to.
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
