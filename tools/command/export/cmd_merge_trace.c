/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh merge-trace: one timeline of several ranks, on aligned clocks. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/export/merged_trace.h"
#include "tools/command/ranks/fold_inputs.h"
#include "tools/ranks/fold/fold_merge.h"

static const char doc[] =
	"Write the timelines of several ranks of a job as one, on aligned clocks.\v"
	"Reads recordings; a directory stands for those in it. The file's ending is its format: .json for Chrome's, .pftrace for "
	"Perfetto's, and .gz after it compresses. Each rank is a process, whose label says how exactly its clock is known. "
	"Collectives that several of the ranks had are slices of their own, with arrows from rank to rank in the order in which "
	"they entered: one arrow less than ranks. With --steps each rank's own steps count, and what begins in them.";

/* Of a rank; of more, arrows are those of a choice that is the same on all ranks. */
#define COLLECTIVES_MAX 32768u

enum { KEY_RANKS = 0x2000, KEY_STEPS, KEY_ALL };

static const struct argp_option own_options[] = {
	{"output", 'o', "FILE", 0, "write it there: .json or .pftrace, and .gz", 0},
	{"ranks", KEY_RANKS, "A,B-C", 0, "these ranks (all)", 0},
	{"steps", KEY_STEPS, "A[-B]", 0, "these steps (all)", 0},
	{"all", KEY_ALL, NULL, 0, "stacks with all frames", 0},
	{0},
};

struct range {
	uint32_t first, last;
};

struct merge_trace_options {
	struct fold_inputs inputs;
	const char *output;
	const struct trace_format *format;
	struct range *ranges; /* of ranks; none: all */
	size_t n_ranges, ranges_room;
	struct trace_window window;
};

/* ---- options --------------------------------------------------------------------------------- */

static uint32_t parse_rank(struct argp_state *state, const char *text, char **end)
{
	unsigned long number = strtoul(text, end, 10);

	if (*end == text || *text < '0' || *text > '9' || number >= UINT32_MAX)
		argp_error(state, "--ranks takes numbers: 0,17 or 0-3");
	return (uint32_t)number;
}

static void parse_ranks(struct merge_trace_options *options, const char *text,
			struct argp_state *state)
{
	for (;;) {
		struct range range;
		char *end;

		range.first = range.last = parse_rank(state, text, &end);
		if (*end == '-')
			range.last = parse_rank(state, end + 1, &end);
		if ((*end && *end != ',') || range.last < range.first)
			argp_error(state, "--ranks takes numbers: 0,17 or 0-3");
		options->ranges =
			torsh_array_reserve(options->ranges, options->n_ranges,
					    &options->ranges_room, sizeof(*options->ranges));
		options->ranges[options->n_ranges++] = range;
		if (!*end)
			return;
		text = end + 1;
	}
}

static void choose_format(struct merge_trace_options *options, struct argp_state *state)
{
	static const struct trace_format *const formats[] = {&torsh_trace_chrome,
							     &torsh_trace_perfetto};
	size_t n;

	if (!options->output)
		argp_error(state, "where to? Give -o FILE.json or -o FILE.pftrace");
	n = strlen(options->output);
	if (n > 3 && strcmp(options->output + n - 3, ".gz") == 0)
		n -= 3;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		size_t n_ending = strlen(formats[i]->ending);

		if (n > n_ending &&
		    strncmp(options->output + n - n_ending, formats[i]->ending, n_ending) == 0)
			options->format = formats[i];
	}
	if (!options->format)
		argp_error(state, "%s: it takes .json or .pftrace, and .gz after it",
			   options->output);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct merge_trace_options *options = state->input;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case KEY_RANKS:
		parse_ranks(options, argument, state);
		return 0;
	case KEY_STEPS:
		torsh_argument_steps(state, argument, &options->window.first_step,
				     &options->window.last_step);
		options->window.has_steps = true;
		return 0;
	case KEY_ALL:
		options->window.is_all = true;
		return 0;
	case ARGP_KEY_ARG:
		torsh_fold_inputs_add_recordings(&options->inputs, argument);
		return 0;
	case ARGP_KEY_END:
		if (!options->inputs.n)
			argp_error(state, "which ranks? Give recordings or directories");
		choose_format(options, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the job --------------------------------------------------------------------------------- */

/* Fold the recordings, with more collectives than usual, and read the sum. */
static struct job *read_job(const struct fold_inputs *inputs)
{
	const struct fold_choice choice = {.n_samples = COLLECTIVES_MAX};
	const char *folder = getenv("TMPDIR");
	char *directory =
		     torsh_need_text("%s/torsh-merge-XXXXXX", folder && *folder ? folder : "/tmp"),
	     **folds = torsh_need_items(NULL, 0, inputs->n, sizeof(*folds)), *merged;
	char error[512] = "it can't be read";
	struct job *job;

	if (!mkdtemp(directory))
		torsh_die("%s can't be made: %s", directory, strerror(errno));
	for (size_t i = 0; i < inputs->n; i++) {
		folds[i] = torsh_need_text("%s/%zu.fold", directory, i);
		torsh_fold_recording(inputs->paths[i], &choice, folds[i]);
	}
	merged = torsh_need_text("%s/merged.fold", directory);
	torsh_fold_merge_files((const char *const *)folds, inputs->n, merged);
	job = torsh_job_read(merged, error, sizeof(error));
	for (size_t i = 0; i < inputs->n; i++) {
		unlink(folds[i]);
		free(folds[i]);
	}
	unlink(merged);
	rmdir(directory);
	free(merged);
	free(directory);
	free(folds);
	if (!job)
		torsh_die("%s", error);
	return job;
}

static bool is_wanted(const struct merge_trace_options *options, const struct job_rank *rank)
{
	for (size_t i = 0; i < options->n_ranges; i++) {
		if (rank->row->has_rank && rank->number >= options->ranges[i].first &&
		    rank->number <= options->ranges[i].last)
			return true;
	}
	return !options->n_ranges;
}

/* Returns the rank's process, or NULL if it is not of this recording. */
static struct recorded_process *find_process(const struct reading *reading,
					     const struct job_rank *rank)
{
	for (size_t i = 0; i < reading->n_processes; i++) {
		struct recorded_process *process = reading->processes[i];

		if (reading->recording->start_realtime_ns == rank->row->clock &&
		    process->pid == rank->row->pid &&
		    reading->recording->start_realtime_ns + process->start_ns ==
			    rank->row->start_ns)
			return process;
	}
	return NULL;
}

/* Add the wanted ranks of a recording. Returns whether it has any. */
static bool add_ranks(struct merged_trace *merged, struct reading *reading,
		      const struct merge_trace_options *options)
{
	size_t n_before = merged->n;

	for (uint32_t i = 0; i < merged->job->n_ranks; i++) {
		struct recorded_process *process = find_process(reading, &merged->job->ranks[i]);

		if (process && is_wanted(options, &merged->job->ranks[i]))
			merged->ranks[merged->n++] = (struct merged_rank){.job = merged->job,
									  .rank = i,
									  .reading = reading,
									  .process = process};
	}
	return merged->n > n_before;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct merged_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void warn_of_losses(const struct merged_trace *merged)
{
	uint64_t n_most = 0;

	for (size_t i = 0; i < merged->n; i++) {
		const Torsh__FoldRank *row = merged->job->ranks[merged->ranks[i].rank].row;

		if (row->threshold < UINT64_MAX && row->totals[FOLD_TOTAL_collectives] > n_most)
			n_most = row->totals[FOLD_TOTAL_collectives];
	}
	if (n_most)
		torsh_warn("arrows are only between some collectives, as a rank has %" PRIu64,
			   n_most - 1);
	if (merged->job->n_contradicted)
		torsh_warn("collectives contradict the exchanges of times of %zu clocks, which "
			   "are not used",
			   merged->job->n_contradicted);
}

int torsh_command_merge_trace(int argc, char **argv)
{
	static const struct argp parser = {own_options, parse, "PATH...", doc, NULL, NULL, NULL};
	struct merge_trace_options options = {.window.to_ns = UINT64_MAX};
	struct merged_trace merged = {0};
	struct read_options *read_options;
	struct reading *readings;
	struct job *job;
	int rc;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&parser, argc, argv, 0, NULL, &options);
	merged.job = job = read_job(&options.inputs);
	readings = torsh_need_items(NULL, 0, options.inputs.n, sizeof(*readings));
	read_options = torsh_need_items(NULL, 0, options.inputs.n, sizeof(*read_options));
	merged.ranks = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*merged.ranks));
	for (size_t i = 0; i < options.inputs.n; i++) {
		read_options[i] = (struct read_options){.path = options.inputs.paths[i],
							.without = READING_WITHOUT_HEAP};
		torsh_reading_open(&readings[i], &read_options[i]);
		if (!add_ranks(&merged, &readings[i], &options))
			torsh_reading_drop(&readings[i]);
	}
	if (!merged.n)
		torsh_die("none of the recordings has such a rank");
	qsort(merged.ranks, merged.n, sizeof(*merged.ranks), compare_ranks);
	torsh_merged_trace_prepare(&merged, &options.window, options.format);
	warn_of_losses(&merged);
	rc = torsh_merged_trace_write(&merged, options.format, options.output);
	if (rc < 0)
		torsh_die("can't write %s: %s", options.output, strerror(-rc));
	torsh_merged_trace_free(&merged);
	for (size_t i = 0; i < options.inputs.n; i++)
		torsh_reading_close(&readings[i], &read_options[i]);
	free(readings);
	free(read_options);
	free(options.ranges);
	torsh_job_free(job);
	torsh_fold_inputs_free(&options.inputs);
	return TORSH_EXIT_DONE;
}
