/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh merge-trace's file: the timelines of several ranks on the clock of the job's first one. */
#ifndef TORSH_COMMAND_EXPORT_MERGED_TRACE_H
#define TORSH_COMMAND_EXPORT_MERGED_TRACE_H

#include "tools/command/export/export_timeline.h"
#include "tools/ranks/job/job.h"

/* A rank in the file. */
struct merged_rank {
	const struct job *job;
	uint32_t rank; /* index in the job */
	struct reading *reading; /* of its recording */
	struct recorded_process *process;
	struct prepass prepass;
	struct trace trace;
	struct trace_merge merge;
	int64_t origin_ns; /* of the file, since the job's origin */
	struct trace_call *calls;
	size_t n_calls, calls_room;
	char *label;
};

struct merged_trace {
	const struct job *job;
	struct merged_rank *ranks; /* by number */
	size_t n;
	uint64_t n_flows; /* collectives that at least two of the ranks had */
};

/*
 * Prepare the trace of n ranks, whose job, rank, reading and process are set: choose the window,
 * align clocks, match collectives. Ends the program if nothing is left.
 */
void torsh_merged_trace_prepare(struct merged_trace *merged, const struct trace_window *window,
				const struct trace_format *format);

/* Write it. Returns 0 or -errno. */
int torsh_merged_trace_write(struct merged_trace *merged, const struct trace_format *format,
			     const char *path);

/* Free what was prepared. */
void torsh_merged_trace_free(struct merged_trace *merged);

#endif
