/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh workloads: parses the options, and executes Python's torsh.workloads with them, which
 * profiles and compares small models.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/session/executable_report.h"
#include "tools/command/session/python_program.h"

#define MODULE "torsh.workloads"
#define WORDS_MAX 256

static const char doc[] =
	"Profile small models, plain and in variants, and compare the runs: `list` shows the models, "
	"`run` profiles all of them or those that are named, `compare` prints time, peak memory, FLOPs "
	"and operators of a step, with their ratios to the plain run.\v"
	"A NAME is one of `torsh workloads list`, or FILE.py with a function get_model_and_input(), which "
	"returns a model and its input, or a tuple of inputs. PyTorch is needed. Each run is a process of its own "
	"below DIR/NAME/DEVICE-VARIANT, with a recording; of a device also profile.json, manifest.json, corr.json and "
	"part.json. What is complete is not run again, unless its options or its source have changed: a run that was "
	"interrupted goes on, and what failed is tried again. While one of several runs measures the others are stopped. Exit status: "
	"1 if a run failed; the reason, with the end of what the program printed, is shown and kept.";

/* Those whose key is not 0 have a short form. */
static const struct argp_option options_list[] = {
	{"output", 'o', "DIR", 0, "where the runs are (torsh-workloads)", 0},
	{"jobs", 'j', "N", 0, "so many runs at the same time (one for each processor, 4 at most)",
	 0},
	{"variants", 1, "LIST", 0,
	 "of eager, compile, channels_last, amp and cudagraphs (all but the last)", 0},
	{"devices", 2, "LIST", 0, "of cpu and cuda (those that PyTorch has)", 0},
	{"size", 3, "SIZE", 0, "small or full (small, but full on a device of CUDA that is real)",
	 0},
	{"warmup-iters", 4, "N", 0, "calls before those that are measured (2)", 0},
	{"measure-iters", 5, "N", 0, "calls that are measured (5)", 0},
	{"timeout", 6, "SECONDS", 0, "end a run that takes longer (600)", 0},
	{"python", 7, "FILE", 0,
	 "the interpreter with PyTorch (that of torsh's virtual environment, else python3)", 0},
	{"launcher", 8, "COMMAND", 0, "a program, with arguments, that starts each run", 0},
	{"counters", 9, "WHAT", 0,
	 "of devices: off, operators, operators:2 or operators:full (off)", 0},
	{"again", 10, NULL, 0, "also run what is complete", 0},
	{"json", 11, NULL, 0, "print JSON", 0},
	{0},
};

struct command_line {
	const char *python;
	char *words[WORDS_MAX + 1];
	size_t n, n_arguments;
};

static void add(struct command_line *line, char *word, const struct argp_state *state)
{
	if (line->n == WORDS_MAX)
		argp_error(state, "more than %d names and options", WORDS_MAX);
	line->words[line->n++] = word;
}

static error_t add_option(struct command_line *line, int key, char *argument,
			  struct argp_state *state)
{
	for (const struct argp_option *option = options_list; option->name; option++) {
		if (option->key != key)
			continue;
		add(line,
		    argument ? torsh_need_text("--%s=%s", option->name, argument)
			     : torsh_need_text("--%s", option->name),
		    state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void check_action(const char *action, struct argp_state *state)
{
	if (strcmp(action, "list") && strcmp(action, "run") && strcmp(action, "compare"))
		argp_error(state, "list, run or compare? Not \"%s\"", action);
}

static error_t parse_workloads(int key, char *argument, struct argp_state *state)
{
	struct command_line *line = state->input;

	if (key == ARGP_KEY_ARG) {
		if (!line->n_arguments++)
			check_action(argument, state);
		add(line, argument, state);
		return 0;
	}
	if (key == ARGP_KEY_NO_ARGS)
		argp_error(state, "list, run or compare?");
	if (key == 7)
		line->python = argument;
	return add_option(line, key, argument, state);
}

/* The module's folder goes first in PYTHONPATH, if it is where make or make install has it. */
static void lead_to_module(void)
{
	static const char *const places[] = {"../lib/torsh/python", "../tools/python"};
	char *directory = torsh_own_directory();
	const char *others = getenv("PYTHONPATH");

	for (size_t i = 0; directory && i < sizeof(places) / sizeof(*places); i++) {
		char *path = torsh_need_text("%s/%s", directory, places[i]);
		char *real = realpath(path, NULL);
		char *all = real ? torsh_need_text("%s%s%s", real, others && *others ? ":" : "",
						   others ? others : "")
				 : NULL;

		free(path);
		free(real);
		if (!all)
			continue;
		if (setenv("PYTHONPATH", all, 1) < 0)
			torsh_die("can't set PYTHONPATH: %s", strerror(errno));
		free(all);
		break;
	}
	free(directory);
}

/* The module starts programs with this command. */
static void name_command(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		torsh_die("can't find this program's own path: %s", strerror(errno));
	path[n] = '\0';
	if (setenv("TORSH", path, 1) < 0)
		torsh_die("can't set TORSH: %s", strerror(errno));
}

int torsh_command_workloads(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options_list,
		.parser = parse_workloads,
		.args_doc = "list\nrun [NAME|FILE.py...]\ncompare [NAME...]",
		.doc = doc,
	};
	struct command_line line = {0};
	char **command, *program;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &line);
	command = torsh_python_command(MODULE, line.words);
	if (line.python)
		command[0] = (char *)(uintptr_t)line.python;
	program = torsh_program_find(command[0]);
	if (!program)
		torsh_die("there is no program %s", command[0]);
	lead_to_module();
	name_command();
	execv(program, command);
	torsh_die("can't run %s: %s", program, strerror(errno));
}
