/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Exports of the timeline: what a format's writer gets, and what writers have in common. Each goes
 * over the timeline by itself and holds no more than its labels and the open spans.
 */
#ifndef TORSH_EXPORT_TRACE_H
#define TORSH_EXPORT_TRACE_H

#include "tools/export/output_stream.h"
#include "tools/memory/leaks/rules/suppress.h"
#include "tools/symbols/symbols.h"
#include "tools/timeline/device/launch_join.h"

/* A collective of the process that other ranks in the file had, too. Times are the recording's. */
struct trace_call {
	const char *name, *group;
	uint64_t begin_ns, end_ns; /* end_ns is begin_ns where the end is not known */
	uint64_t sequence, bytes;
	/* the same for all ranks, from 1 on; arrows go from rank to rank as they entered */
	uint64_t flow;
	bool is_first, is_last; /* of the ranks that entered it */
	uint32_t lane; /* of those that overlap each has another one, from 0 on */
	uint64_t error_ns; /* of begin_ns, in the merged trace */
};

/* What makes a trace a part of a file in which several are: torsh merge-trace. */
struct trace_merge {
	/* Returns a time of the recording in the merged trace, since origin_realtime_ns. */
	uint64_t (*time)(const void *context, uint64_t at_ns);
	const void *context;
	uint64_t origin_realtime_ns;
	bool is_first, is_last; /* of the parts */
	const char *label; /* of the process: how exactly its clock is known */
	const struct trace_call *calls; /* in the order of their begins */
	size_t n_calls;
	/* Kept from part to part, zeroed at first: numbers in the file, and the JSON so far. */
	uint32_t n_parts, n_sequences;
	uint64_t n_tracks, n_flows;
	struct json_writer json;
	struct chrome_samples *samples;
};

struct trace {
	const struct recording *recording;
	struct recorded_process *const *processes; /* pre-pass->items may be of more */
	size_t n_processes;
	const struct prepass *prepass;
	struct symbols *symbols; /* of stacks; NULL: stacks are left out */
	struct suppress *suppress; /* leaks that are not reported; NULL: all are */
	uint64_t from_ns, to_ns; /* what begins in there, since the recording began */
	bool is_all; /* stacks are not merged: see tools/export/stacks/merged_stacks.h */
	bool is_of_steps; /* the window is that of steps: of devices, what was launched in there */
	struct output_stream *output; /* NULL where the format needs a path */
	struct trace_merge *merge; /* NULL: the file has this trace alone */
	const char *path;
	const char *model_name, *device_name; /* NULL: those that were recorded */
};

/* What a recording must hold for a format to have something to write. */
enum trace_needs { TRACE_NEEDS_NOTHING, TRACE_NEEDS_EVENTS, TRACE_NEEDS_TENSORS };

struct trace_format {
	const char *name;
	const char *ending; /* of files, with a dot */
	bool is_binary;
	bool needs_path; /* it doesn't write a stream of bytes */
	bool is_directory; /* what it writes */
	bool is_of_one_rank; /* readers take a file for one rank's */
	bool needs_heap; /* it reads usage by stack, too */
	bool has_samples; /* of the processor: they are enough to write */
	bool takes_names; /* those of the model and the device may be given */
	enum trace_needs needs;
	/* Returns 0 or -errno. */
	int (*write)(struct trace *trace);
};

extern const struct trace_format torsh_trace_chrome, torsh_trace_perfetto, torsh_trace_json,
	torsh_trace_csv, torsh_trace_series, torsh_trace_sqlite, torsh_trace_tensorboard,
	torsh_trace_memory, torsh_trace_profile, torsh_trace_part, torsh_trace_manifest,
	torsh_trace_corr, torsh_trace_html, torsh_trace_firefox;

static inline bool torsh_trace_has(const struct trace *trace, uint64_t at_ns)
{
	return at_ns >= trace->from_ns && at_ns < trace->to_ns;
}

/* A time of the recording as the file has it. */
static inline uint64_t torsh_trace_time(const struct trace *trace, uint64_t at_ns)
{
	return trace->merge ? trace->merge->time(trace->merge->context, at_ns) : at_ns;
}

/*
 * Is the span that launched it in the trace, too, and before it? Only then is there something to
 * draw an arrow from.
 */
bool torsh_trace_has_launch(const struct trace *trace, const struct device_activity *activity);

/* Say that so many rows of devices overlap too many others (tools/export/activity_lanes.h). */
void torsh_trace_warn_left_out(uint64_t n);

/*
 * Write to trace->path, or to standard output where it is NULL, compressed where its name ends in
 * .gz. Dies where that can't be. Returns 0 or -errno.
 */
int torsh_trace_to_file(const struct trace *trace, const struct trace_format *format);

/*
 * Go over the spans in the trace's processes; devices receives launches and device activities
 * in the trace, and may be NULL. visitor's launch may be NULL: then event may receive calls of
 * CUDA. Returns 0 or -errno.
 */
int torsh_trace_walk(struct trace *trace, const struct span_visitor *visitor,
		     const struct device_visitor *devices, void *context);

/* Count a tensor for the operator in which it was allocated or freed; NULL: in none. */
static inline void torsh_trace_add_tensor(struct span *innermost, const struct event_tensor *tensor)
{
	if (innermost && tensor->is_free)
		innermost->self_freed_bytes += tensor->bytes;
	else if (innermost)
		innermost->self_allocated_bytes += tensor->bytes;
}

/* The id that the system gave a thread, or the pid where the row is not there. */
uint32_t torsh_trace_tid(const struct recorded_process *process, uint32_t thread);

/* "Python GC, generation 2": the name of a run of Python's garbage collector. */
const char *torsh_trace_gc_name(const struct event_python_gc *run);

/*
 * A number that JSON and viewers can take from a payload; false: there is none, or it is infinite
 * or no number.
 */
bool torsh_trace_payload(uint32_t type, uint64_t payload, double *number);

/* Where forward spans began, by sequence number and thread: for arrows to their backward. */
struct forward_spans;

struct forward {
	uint64_t sequence, start_ns, ordinal;
	uint32_t thread, forward_thread;
	bool is_there;
};

/* Create an empty table. */
struct forward_spans *torsh_forward_create(void);

/* Free the table. */
void torsh_forward_destroy(struct forward_spans *spans);

/* Remember a forward operator. Returns whether it is one. */
bool torsh_forward_add(struct forward_spans *spans, const struct span *span);

/* The forward span of a backward one, once. Returns false where there is none. */
bool torsh_forward_take(struct forward_spans *spans, const struct span *span,
			struct forward *forward);

#endif
