/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh export's exports of the timeline: one file, or one per rank. */
#ifndef TORSH_COMMAND_EXPORT_TIMELINE_H
#define TORSH_COMMAND_EXPORT_TIMELINE_H

#include "tools/command/reading.h"
#include "tools/export/trace.h"

/* Its options. */
struct trace_window {
	uint64_t from_ns, to_ns; /* since the recording began */
	bool has_steps;
	uint64_t first_step, last_step; /* numbers, if has_steps */
	bool is_all; /* stacks are not merged */
	bool is_by_rank; /* write a file per rank if there are several */
	const char *model_name, *device_name; /* NULL: those that were recorded */
};

/* Returns the format of that name, or NULL. */
const struct trace_format *torsh_trace_format(const char *name);

/*
 * Restrict a trace, whose pre-pass is made, to the window's steps. Ends the program with a message
 * if there are none, or if the format would have no content.
 */
void torsh_timeline_choose(struct trace *trace, const struct trace_format *format,
			   const struct trace_window *window);

/*
 * Returns the name that the page of a recording gets: NAME.html for DIR/NAME.torsh. The caller
 * frees it.
 */
char *torsh_page_name(const char *recording);

/*
 * Write the timeline of the reading to a path; NULL: to standard output. A directory, and a path
 * with %r, gets a file per rank; is_by_rank adds the rank to the path if there are several. Ends
 * the program with a message on failure, or if the format would have no content.
 */
void torsh_timeline_export(const struct trace_format *format, const struct trace_window *window,
			   const char *path, const struct reading *reading);

#endif
