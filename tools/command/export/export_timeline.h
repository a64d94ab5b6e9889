/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exports of the timeline, of torsh export: one file, or one for each rank. */
#ifndef TORSH_COMMAND_EXPORT_TIMELINE_H
#define TORSH_COMMAND_EXPORT_TIMELINE_H

#include "tools/command/reading.h"
#include "tools/export/trace.h"

/* Its options. */
struct trace_window {
	uint64_t from_ns, to_ns; /* since the recording began */
	bool has_steps;
	uint64_t first_step, last_step; /* numbers, where has_steps */
	bool is_all; /* no stacks are merged */
	bool is_by_rank; /* where there are several ranks each gets a file */
};

/* The format of that name, or NULL. */
const struct trace_format *torsh_trace_format(const char *name);

/*
 * Write the timeline of what was read to a path; NULL: to standard output. A directory, and a path
 * with %r, gets a file for each rank; is_by_rank gives the path one for each where there are
 * several. Dies with a sentence where that can't be done, or where there is nothing that the format
 * could hold.
 */
void torsh_timeline_export(const struct trace_format *format, const struct trace_window *window,
			   const char *path, const struct reading *reading);

#endif
