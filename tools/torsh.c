/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The torsh command: finds the subcommand and passes it the rest of the line. Each subcommand is a
 * file of tools/command/, listed in command.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/memory.h"
#include "tools/terminal/terminal.h"
#include "tools/command/command.h"

#ifndef TORSH_VERSION
#define TORSH_VERSION "unknown"
#endif

typedef int command_main(int argc, char **argv);

static const struct {
	const char *name, *text;
	command_main *main;
} commands[] = {
#define COMMAND(name, text) {#name, text, torsh_command_##name},
	TORSH_COMMANDS
#undef COMMAND
};

#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

/* Accepted, but not listed: former names, and what only the writer runs. */
static const struct {
	const char *name;
	command_main *main;
} unlisted[] = {
#define ALIAS(former, name) {#former, torsh_command_##name},
	TORSH_COMMAND_ALIASES
#undef ALIAS
	{"finish", torsh_command_finish},
};

#define N_UNLISTED (sizeof(unlisted) / sizeof(*unlisted))

/* Returns the byte of a name of the table as users write it. */
static char shown(char byte)
{
	return byte == '_' ? '-' : byte;
}

static bool is_name(const char *name, const char *given)
{
	while (*name && shown(*name) == *given) {
		name++;
		given++;
	}
	return !*name && !*given;
}

static void print_command(FILE *file, const char *name, const char *text)
{
	fputs("  torsh ", file);
	for (const char *at = name; *at; at++)
		putc(shown(*at), file);
	fprintf(file, "%*s %s\n", strlen(name) < 8 ? (int)(8 - strlen(name)) : 0, "", text);
}

static void print_usage(FILE *file)
{
	fputs("Usage: torsh COMMAND [OPTION...] ...\n"
	      "Finds out what memory a program holds, leaks and wastes, without changing the program.\n\n",
	      file);
	for (size_t i = 0; i < N_COMMANDS; i++)
		print_command(file, commands[i].name, commands[i].text);
	fputs("\nStart with:\n"
	      "  torsh run -o out -- python3 train.py\n"
	      "  torsh report out\n\n"
	      "`torsh COMMAND --help` lists a command's options. Exit status: 0 done, 1 a budget failed,\n"
	      "2 wrong usage or unreadable input. More in the manual page torsh(1).\n",
	      file);
}

/* Output that could not be written is an error, whatever the command found. */
static int end_output(int status)
{
	bool has_failed = ferror(stdout);

	if (fflush(stdout) == 0 && !has_failed)
		return status;
	torsh_warn("can't write the output: %s",
		   has_failed ? "a part of it was refused" : strerror(errno));
	return TORSH_EXIT_UNREADABLE;
}

/* NULL: there is no such command. */
static command_main *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (is_name(commands[i].name, name))
			return commands[i].main;
	}
	for (size_t i = 0; i < N_UNLISTED; i++) {
		if (strcmp(name, unlisted[i].name) == 0)
			return unlisted[i].main;
	}
	return NULL;
}

/* argv[1] becomes argv[0], as "torsh NAME": argp prints it. */
static int run_command(command_main *command, int argc, char **argv)
{
	char *full = torsh_need_text("torsh %s", argv[1]);
	int status;

	argv[1] = full;
	status = command(argc - 1, argv + 1);
	free(full);
	return end_output(status);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	command_main *command = find_command(name);

	torsh_memory_start(false);
	torsh_terminal_guard();
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_usage(stdout);
		return TORSH_EXIT_DONE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("torsh " TORSH_VERSION);
		return TORSH_EXIT_DONE;
	}
	if (command)
		return run_command(command, argc, argv);
	if (*name)
		torsh_warn("there is no command \"%s\"", name);
	print_usage(stderr);
	return TORSH_EXIT_UNREADABLE;
}
