/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh merge: folds of ranks as one. */
#include <stdlib.h>

#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/ranks/fold_inputs.h"
#include "tools/base/die.h"

static const char doc[] =
	"Merge folds of ranks into one.\v"
	"The result depends on the set of folds only: not on their order, nor on which of them were merged before, to the byte. "
	"Call paths are one where functions, file names and build-ids are. Memory grows with distinct call paths, not with "
	"ranks. A directory stands for its folds or, where it has none, for its recordings, which are folded first.";

#define JOBS_MAX 256

static const struct argp_option own_options[] = {
	{"output", 'o', "FILE", 0, "write it there", 0},
	{"jobs", 'j', "N", 0, "read with so many processes (1)", 0},
	{0},
};

struct merge_options {
	struct fold_inputs inputs;
	const char *output;
	size_t n_jobs;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct merge_options *options = state->input;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case 'j':
		options->n_jobs = torsh_argument_number(state, "jobs", argument);
		if (!options->n_jobs || options->n_jobs > JOBS_MAX)
			argp_error(state, "--jobs %s: from 1 to %d processes", argument, JOBS_MAX);
		return 0;
	case ARGP_KEY_ARG:
		torsh_fold_inputs_add(&options->inputs, argument);
		return 0;
	case ARGP_KEY_END:
		if (!options->inputs.n)
			argp_error(state, "which folds? Give files or directories");
		if (!options->output)
			argp_error(state, "where to? Give -o FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int torsh_command_merge(int argc, char **argv)
{
	static const struct argp parser = {own_options, parse, "PATH...", doc, NULL, NULL, NULL};
	struct merge_options options = {.n_jobs = 1};

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&parser, argc, argv, 0, NULL, &options);
	torsh_fold_inputs_merge(&options.inputs, options.output, options.n_jobs);
	torsh_fold_inputs_free(&options.inputs);
	return TORSH_EXIT_DONE;
}
