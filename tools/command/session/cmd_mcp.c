/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh mcp: serves recordings to a coding assistant. The server is Python: torsh/assistant. */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/session/python_program.h"

static const char doc[] =
	"Serve the recordings below a folder to a coding assistant, by the Model Context Protocol on standard input and output.\v"
	"The tools are report, leaks, peak, ops, diff and sql, which answer with the JSON of these commands, sql with rows; the prompts are "
	"propose and implement. DIR is the working directory by default: what leads out of it is refused. Nothing is written there, "
	"answers have at most 256 KiB, and queries that write or take longer than 10 s are refused. The server needs Python 3.10 with the package "
	"mcp: pip install 'mcp>=2'.";

enum { KEY_WHERE = 0x2000 };

static const struct argp_option options_mcp[] = {
	{"where", KEY_WHERE, NULL, 0, "print the folder of the prompts and of the plug-in", 0},
	{0},
};

struct mcp_options {
	const char *directory;
	bool is_where;
};

static error_t parse_mcp(int key, char *argument, struct argp_state *state)
{
	struct mcp_options *options = state->input;

	if (key == KEY_WHERE)
		options->is_where = true;
	else if (key == ARGP_KEY_ARG && !options->directory)
		options->directory = argument;
	else if (key == ARGP_KEY_ARG)
		argp_error(state, "one folder is served");
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

/* Returns the folder of Python's modules beside this program; NULL: they are Python's own. */
static char *find_modules(const char *own)
{
	static const char *const places[] = {"../lib/torsh/python", "../tools/python"};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = torsh_need_text("%s/%s", own, places[i]);
		char *module = torsh_need_text("%s/torsh/assistant", path);
		bool is_there = access(module, F_OK) == 0;

		free(module);
		if (is_there)
			return path;
		free(path);
	}
	return NULL;
}

static void set_environment(const char *own, const char *modules)
{
	const char *before = getenv("PYTHONPATH");
	char *command = torsh_need_text("%s/torsh", own);
	char *path = torsh_need_text("%s%s%s", modules ? modules : "",
				     modules && before && *before ? ":" : "", before ? before : "");

	/* The server runs this command, and neither is recorded. */
	if (setenv("TORSH", command, 1) || setenv("TORSH_PROFILER_ENABLED", "0", 1) ||
	    setenv("PYTHONDONTWRITEBYTECODE", "1", 1) || (*path && setenv("PYTHONPATH", path, 1)))
		torsh_die("out of memory");
	free(command);
	free(path);
}

static int print_where(const char *modules)
{
	char *resolved = modules ? realpath(modules, NULL) : NULL;

	if (!resolved) {
		torsh_warn(
			"the prompts and the plug-in are in torsh/assistant of Python's packages: "
			"python3 -c 'import torsh.assistant as a; print(a.__path__[0])'");
		return TORSH_EXIT_UNREADABLE;
	}
	printf("%s/torsh/assistant\n", resolved);
	free(resolved);
	return TORSH_EXIT_DONE;
}

int torsh_command_mcp(int argc, char **argv)
{
	const struct argp argp = {
		.options = options_mcp, .parser = parse_mcp, .args_doc = "[DIR]", .doc = doc};
	struct mcp_options options = {0};
	char *arguments[2] = {NULL}, *own, *modules, **command;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	own = torsh_need(torsh_own_directory());
	modules = find_modules(own);
	if (options.is_where)
		return print_where(modules);
	arguments[0] = (char *)(uintptr_t)(options.directory ? options.directory : ".");
	command = torsh_python_command("torsh.assistant", arguments);
	set_environment(own, modules);
	execv(command[0], command);
	torsh_die("%s can't be run: %s", command[0], strerror(errno));
}
