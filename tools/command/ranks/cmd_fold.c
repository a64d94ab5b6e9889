/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh fold: a recording's ranks as a small file that merges with others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/ranks/fold_inputs.h"
#include "tools/recording/read.h"

static const char doc[] =
	"Fold a recording: the summary of its ranks, for torsh merge and torsh ranks.\v"
	"A fold has call paths by step with count, sum, least, most and a sketch of durations, collectives by group and sequence, "
	"memory by site, findings, and a row for each rank. It takes some tens of KiB for each rank; steps beyond 64 share "
	"buckets, and of many collectives those of some sequence numbers are kept, the same ones on all ranks.";

enum { KEY_RANK = 0x2000, KEY_PID };

static const struct argp_option own_options[] = {
	{"output", 'o', "FILE", 0, "write it there (the recording's name with .fold)", 0},
	{"rank", KEY_RANK, "N", 0, "only the process of this rank", 0},
	{"pid", KEY_PID, "PID", 0, "only this process", 0},
	{0},
};

struct fold_options {
	const char *path, *output;
	struct fold_choice choice;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct fold_options *options = state->input;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case KEY_RANK:
		options->choice.has_rank = true;
		options->choice.rank = (uint32_t)torsh_argument_number(state, "rank", argument);
		return 0;
	case KEY_PID:
		options->choice.has_pid = true;
		options->choice.pid = (uint32_t)torsh_argument_number(state, "pid", argument);
		return 0;
	default:
		return torsh_argument_path(key, argument, state, &options->path);
	}
}

/* Returns NAME.fold for NAME.torsh, which the caller frees. */
static char *name_output(const char *recording)
{
	size_t n = strlen(recording);

	if (n > 6 && strcmp(recording + n - 6, ".torsh") == 0)
		n -= 6;
	return torsh_need_text("%.*s.fold", (int)n, recording);
}

int torsh_command_fold(int argc, char **argv)
{
	static const struct argp parser = {own_options, parse, "[PATH]", doc, NULL, NULL, NULL};
	struct fold_options options = {0};
	char error[512] = "it can't be read";
	char *path, *output;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&parser, argc, argv, 0, NULL, &options);
	path = torsh_recording_locate(options.path, error, sizeof(error));
	if (!path)
		torsh_die("%s", error);
	output = options.output ? torsh_need_text("%s", options.output) : name_output(path);
	torsh_fold_recording(path, &options.choice, output);
	if (!options.output)
		torsh_warn("written to %s", output);
	free(output);
	free(path);
	return TORSH_EXIT_DONE;
}
