/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh ranks: who makes the other ranks wait, and why. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/command/ranks/fold_inputs.h"
#include "tools/command/ranks/ranks_view.h"
#include "tools/ranks/fold/fold_file.h"

static const char doc[] =
	"Show all ranks of a job: who makes the others wait, and why.\v"
	"Reads a merged fold, or merges folds and recordings first; a directory stands for those in it. Collectives are matched "
	"by group and sequence, and only what all ranks of a group have is compared, without the first step. A rank is a "
	"straggler if it costs the job 5 % of the compared time and more than by turns, which 3.5 standard errors must show. "
	"Clocks of several recordings are aligned by what their writers measured (TORSH_PROFILER_CLOCK_PEERS), else by "
	"collectives, which nobody leaves before the last rank has entered; what lies within the error of that is not judged. "
	"Causes are what a late rank did more than the others between two collectives. With --from-chrome, paths are traces of "
	"PyTorch's profiler, one of each rank, gzip or not; a directory stands for those in it. Of these also the times that "
	"HolisticTraceAnalysis gives are shown, by its definitions: only what was launched before the last profiler step counts.";

#define TEXT_LIMIT 16
#define JOBS_MAX 256

enum { KEY_JSON = 0x2000, KEY_LIMIT, KEY_HTML, KEY_FROM_CHROME };

static const struct argp_option own_options[] = {
	{"json", KEY_JSON, NULL, 0, "print JSON", 0},
	{"limit", KEY_LIMIT, "N", 0, "at most N rows of a table (16; 1000 in JSON); 0: all", 0},
	{"from-chrome", KEY_FROM_CHROME, NULL, 0,
	 "read traces of PyTorch's profiler (*.json, *.json.gz), and break their time down", 0},
	{"html", KEY_HTML, NULL, 0, "write a page for a web browser, to ranks.html or -o", 0},
	{"output", 'o', "FILE", 0, "write the page there; -: to standard output", 0},
	{"jobs", 'j', "N", 0, "read with so many processes, traces with threads (1)", 0},
	{0},
};

struct ranks_options {
	struct fold_inputs inputs;
	char **arguments; /* the command line's */
	size_t n_arguments;
	bool is_json, is_html, is_from_chrome, has_limit;
	const char *output;
	size_t limit, n_jobs;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ranks_options *options = state->input;

	switch (key) {
	case KEY_JSON:
		options->is_json = true;
		return 0;
	case KEY_FROM_CHROME:
		options->is_from_chrome = true;
		return 0;
	case KEY_HTML:
		options->is_html = true;
		return 0;
	case 'o':
		options->output = argument;
		return 0;
	case KEY_LIMIT:
		options->has_limit = true;
		options->limit = torsh_argument_number(state, "limit", argument);
		return 0;
	case 'j':
		options->n_jobs = torsh_argument_number(state, "jobs", argument);
		if (!options->n_jobs || options->n_jobs > JOBS_MAX)
			argp_error(state, "--jobs %s: from 1 to %d processes", argument, JOBS_MAX);
		return 0;
	case ARGP_KEY_ARG:
		options->arguments[options->n_arguments++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (!options->n_arguments)
			argp_error(state,
				   options->is_from_chrome
					   ? "which ranks? Give traces or directories"
					   : "which ranks? Give folds, recordings or directories");
		if (options->output && !options->is_html)
			argp_error(state, "--output is where --html writes its page");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the job --------------------------------------------------------------------------------- */

/* Write the fold of the inputs, or of the traces, into a temporary file, and read that. */
static struct job *read_written(const struct ranks_options *options, struct kineto_ranks *traces,
				char *error, size_t n_error)
{
	const char *folder = getenv("TMPDIR");
	char *directory =
		     torsh_need_text("%s/torsh-ranks-XXXXXX", folder && *folder ? folder : "/tmp"),
	     *merged;
	struct job *job;

	if (!mkdtemp(directory))
		torsh_die("%s can't be made: %s", directory, strerror(errno));
	merged = torsh_need_text("%s/merged.fold", directory);
	if (traces)
		torsh_kineto_ranks_write(traces, merged);
	else
		torsh_fold_inputs_merge(&options->inputs, merged, options->n_jobs);
	job = torsh_job_read(merged, error, n_error);
	unlink(merged);
	rmdir(directory);
	free(merged);
	free(directory);
	return job;
}

static struct job *read_job(struct ranks_options *options, struct kineto_ranks *traces, char *error,
			    size_t n_error)
{
	for (size_t i = 0; i < options->n_arguments; i++) {
		if (options->is_from_chrome)
			torsh_fold_inputs_add_traces(&options->inputs, options->arguments[i]);
		else
			torsh_fold_inputs_add(&options->inputs, options->arguments[i]);
	}
	if (options->is_from_chrome) {
		torsh_kineto_ranks_read(traces, options->inputs.paths, options->inputs.n,
					options->n_jobs);
		return read_written(options, traces, error, n_error);
	}
	if (options->inputs.n == 1 && torsh_fold_is_fold(options->inputs.paths[0]))
		return torsh_job_read(options->inputs.paths[0], error, n_error);
	return read_written(options, NULL, error, n_error);
}

static void show(const struct ranks_options *options, const struct ranks_view *view)
{
	if (options->is_html)
		torsh_ranks_html(view, options->output ? options->output : "ranks.html");
	else if (options->is_json)
		torsh_ranks_json(view);
	else
		torsh_ranks_text(view);
}

int torsh_command_ranks(int argc, char **argv)
{
	static const struct argp parser = {own_options, parse, "PATH...", doc, NULL, NULL, NULL};
	struct ranks_options options = {
		.n_jobs = 1,
		.arguments = torsh_need_items(NULL, 0, (size_t)argc, sizeof(*options.arguments))};
	struct ranks_view view = {0};
	struct kineto_ranks traces = {0};
	char error[512] = "it can't be read";
	struct job *job;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&parser, argc, argv, 0, NULL, &options);
	job = read_job(&options, &traces, error, sizeof(error));
	if (!job)
		torsh_die("%s", error);
	view.job = job;
	view.traces = options.is_from_chrome ? &traces : NULL;
	view.limit = options.has_limit			  ? options.limit
		     : options.is_json || options.is_html ? READ_LIMIT_JSON
							  : TEXT_LIMIT;
	show(&options, &view);
	torsh_job_free(job);
	if (options.is_from_chrome)
		torsh_kineto_ranks_free(&traces);
	torsh_fold_inputs_free(&options.inputs);
	free(options.arguments);
	return TORSH_EXIT_DONE;
}
