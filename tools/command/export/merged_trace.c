/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/export/merged_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/export/output.h"

/* Numbers that no process of Linux has, for those whose pid another one in the file has too. */
#define OTHER_PIDS (1u << 22)

/* ---- times ----------------------------------------------------------------------------------- */

/* A time of the rank's recording, since the job's origin. */
static int64_t job_ns(const struct merged_rank *rank, uint64_t at_ns)
{
	return (int64_t)(rank->reading->recording->start_realtime_ns + at_ns -
			 rank->job->origin_ns);
}

/* And back. */
static uint64_t recording_ns(const struct merged_rank *rank, int64_t at_ns)
{
	int64_t since_ns = (int64_t)((uint64_t)at_ns + rank->job->origin_ns -
				     rank->reading->recording->start_realtime_ns);

	return since_ns > 0 ? (uint64_t)since_ns : 0;
}

/* See struct trace_merge. */
static uint64_t merged_time(const void *context, uint64_t at_ns)
{
	const struct merged_rank *rank = context;
	int64_t shown_ns =
		torsh_job_time(rank->job, rank->rank, job_ns(rank, at_ns)) - rank->origin_ns;

	return shown_ns > 0 ? (uint64_t)shown_ns : 0;
}

/* The file begins when its first rank does. */
static void align(struct merged_trace *merged)
{
	int64_t origin_ns = INT64_MAX;

	for (size_t i = 0; i < merged->n; i++) {
		const struct merged_rank *rank = &merged->ranks[i];
		int64_t start_ns = torsh_job_time(merged->job, rank->rank,
						  job_ns(rank, rank->process->start_ns));

		origin_ns = start_ns < origin_ns ? start_ns : origin_ns;
	}
	for (size_t i = 0; i < merged->n; i++) {
		merged->ranks[i].origin_ns = origin_ns;
		merged->ranks[i].merge.origin_realtime_ns =
			merged->job->origin_ns + (uint64_t)origin_ns;
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool has_pid_before(const struct merged_trace *merged, size_t i, uint32_t pid)
{
	for (size_t k = 0; k < i; k++) {
		if (merged->ranks[k].process->pid == pid)
			return true;
	}
	return false;
}

/* Viewers tell processes apart by their pids, which hosts don't share. */
static void name_process(struct merged_trace *merged, size_t i)
{
	struct merged_rank *rank = &merged->ranks[i];
	struct recorded_process *process = rank->process;
	const struct job_clock *clock = &merged->job->clocks[merged->job->ranks[rank->rank].clock];
	char *name = torsh_need_text("rank %" PRIu32 " on %s, %s (pid %" PRIu32 ")",
				     merged->job->ranks[rank->rank].number, clock->host,
				     torsh_recording_program_name(process), process->pid);
	uint64_t error_ns = torsh_job_time_error(
		merged->job, rank->rank,
		job_ns(rank, rank->trace.from_ns / 2 + (rank->trace.to_ns < UINT64_MAX
								? rank->trace.to_ns
								: process->end_ns) /
							       2));
	char error[SIZE_TEXT_BYTES];

	free(process->program);
	process->program = name;
	if (has_pid_before(merged, i, process->pid))
		process->pid = OTHER_PIDS + (uint32_t)i;
	if (clock->source == CLOCK_IS_UNKNOWN)
		rank->label = torsh_need_text("its clock is unknown: as its host's");
	else if (!error_ns)
		rank->label = torsh_need_text("the first rank's clock");
	else
		rank->label = torsh_need_text("clock within %s, by %s",
					      torsh_size_duration(error_ns, error),
					      torsh_job_clock_sources[clock->source]);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static struct merged_rank *find_rank(struct merged_trace *merged, uint32_t rank)
{
	for (size_t i = 0; i < merged->n; i++) {
		if (merged->ranks[i].rank == rank)
			return &merged->ranks[i];
	}
	return NULL;
}

/* Returns the rank if the entry is in its window. */
static struct merged_rank *shown_rank(struct merged_trace *merged, const struct job_entry *entry)
{
	struct merged_rank *rank = find_rank(merged, entry->rank);

	return rank && torsh_trace_has(&rank->trace, recording_ns(rank, entry->entered_ns)) ? rank
											    : NULL;
}

static void add_call(struct merged_trace *merged, const struct job_call *call,
		     const struct job_entry *entry, bool is_first, bool is_last)
{
	struct merged_rank *rank = find_rank(merged, entry->rank);
	int64_t left_ns = entry->flags & FOLD_SAMPLE_ENDS ? entry->left_ns : entry->entered_ns;

	rank->calls = torsh_array_reserve(rank->calls, rank->n_calls, &rank->calls_room,
					  sizeof(*rank->calls));
	rank->calls[rank->n_calls++] = (struct trace_call){
		.name = merged->job->texts[call->name],
		.group = merged->job->texts[call->group],
		.begin_ns = recording_ns(rank, entry->entered_ns),
		.end_ns = recording_ns(rank, left_ns),
		.sequence = call->sequence,
		.bytes = call->bytes,
		.flow = merged->n_flows,
		.is_first = is_first,
		.is_last = is_last,
		.error_ns = torsh_job_time_error(merged->job, entry->rank, entry->entered_ns),
	};
}

struct entered {
	int64_t at_ns;
	const struct job_entry *entry;
};

static int compare_entered(const void *a, const void *b)
{
	const struct entered *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->entry->rank > y->entry->rank) - (x->entry->rank < y->entry->rank);
}

/* Messages of as many ranks are no collective: each is between two of them. */
static bool is_message(const char *name)
{
	return strncmp(name, "send", 4) == 0 || strncmp(name, "recv", 4) == 0;
}

/* A collective of at least two ranks in their windows; room is for all ranks. */
static void take_call(struct merged_trace *merged, const struct job_call *call,
		      struct entered *room)
{
	size_t n = 0;

	if (is_message(merged->job->texts[call->name]))
		return;
	for (size_t i = 0; i < call->n; i++) {
		const struct job_entry *entry = &merged->job->entries[call->first + i];

		if (shown_rank(merged, entry))
			room[n++] = (struct entered){
				torsh_job_time(merged->job, entry->rank, entry->entered_ns), entry};
	}
	if (n < 2)
		return;
	qsort(room, n, sizeof(*room), compare_entered);
	merged->n_flows++;
	for (size_t i = 0; i < n; i++)
		add_call(merged, call, room[i].entry, i == 0, i + 1 == n);
}

static int compare_calls(const void *a, const void *b)
{
	const struct trace_call *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->flow > y->flow) - (x->flow < y->flow);
}

/* Each goes to the first lane that is free. */
static void choose_lanes(struct merged_rank *rank)
{
	uint64_t *ends_ns = torsh_need_items(NULL, 0, rank->n_calls, sizeof(*ends_ns));
	uint32_t n_lanes = 0;

	for (size_t i = 0; i < rank->n_calls; i++) {
		struct trace_call *call = &rank->calls[i];

		while (call->lane < n_lanes && ends_ns[call->lane] > call->begin_ns)
			call->lane++;
		n_lanes += call->lane == n_lanes;
		ends_ns[call->lane] =
			call->end_ns > call->begin_ns ? call->end_ns : call->begin_ns + 1;
	}
	free(ends_ns);
}

static void match(struct merged_trace *merged)
{
	struct entered *room = torsh_need_items(NULL, 0, merged->job->n_ranks, sizeof(*room));

	for (size_t i = 0; i < merged->job->n_calls; i++)
		take_call(merged, &merged->job->calls[i], room);
	free(room);
	for (size_t i = 0; i < merged->n; i++) {
		struct merged_rank *rank = &merged->ranks[i];

		if (rank->n_calls)
			qsort(rank->calls, rank->n_calls, sizeof(*rank->calls), compare_calls);
		choose_lanes(rank);
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

static void prepare_rank(struct merged_rank *rank, const struct trace_window *window,
			 const struct trace_format *format, const char *path)
{
	rank->trace = (struct trace){
		.recording = rank->reading->recording,
		.processes = &rank->process,
		.n_processes = 1,
		.prepass = &rank->prepass,
		.symbols = rank->reading->symbols,
		.suppress = rank->reading->suppress,
		.from_ns = window->from_ns,
		.to_ns = window->to_ns,
		.is_all = window->is_all,
		.path = path,
		.merge = &rank->merge,
	};
	torsh_prepass_make(&rank->prepass, rank->reading->recording, &rank->process, 1);
	torsh_timeline_choose(&rank->trace, format, window);
}

void torsh_merged_trace_prepare(struct merged_trace *merged, const struct trace_window *window,
				const struct trace_format *format)
{
	for (size_t i = 0; i < merged->n; i++)
		prepare_rank(&merged->ranks[i], window, format, NULL);
	align(merged);
	match(merged);
	for (size_t i = 0; i < merged->n; i++) {
		struct merged_rank *rank = &merged->ranks[i];

		name_process(merged, i);
		rank->merge.time = merged_time;
		rank->merge.context = rank;
		rank->merge.label = rank->label;
		rank->merge.calls = rank->calls;
		rank->merge.n_calls = rank->n_calls;
		rank->merge.is_first = i == 0;
		rank->merge.is_last = i + 1 == merged->n;
		rank->merge.n_parts = (uint32_t)i;
	}
}

int torsh_merged_trace_write(struct merged_trace *merged, const struct trace_format *format,
			     const char *path)
{
	size_t n = strlen(path);
	struct output file;
	struct output_stream output;
	int rc = 0, closed;

	torsh_output_open(&file, path);
	torsh_stream_open(&output, file.file, n > 3 && strcmp(path + n - 3, ".gz") == 0);
	for (size_t i = 0; i < merged->n && rc >= 0; i++) {
		struct merged_rank *rank = &merged->ranks[i];

		if (i) {
			const struct trace_merge *before = &merged->ranks[i - 1].merge;

			rank->merge.n_sequences = before->n_sequences;
			rank->merge.n_tracks = before->n_tracks;
			rank->merge.n_flows = before->n_flows;
			rank->merge.json = before->json;
			rank->merge.samples = before->samples;
		}
		rank->trace.output = &output;
		rank->trace.path = path;
		rc = format->write(&rank->trace);
	}
	closed = torsh_stream_close(&output);
	rc = rc < 0 ? rc : closed;
	torsh_output_close(&file, rc);
	return rc;
}

void torsh_merged_trace_free(struct merged_trace *merged)
{
	for (size_t i = 0; i < merged->n; i++) {
		torsh_prepass_free(&merged->ranks[i].prepass);
		free(merged->ranks[i].calls);
		free(merged->ranks[i].label);
	}
	free(merged->ranks);
}
