/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/die.h"

#define DEFAULT_PAGER "less -FRX"
#define WORDS_MAX 16
#define SHELL_CHARACTERS "|&;<>()$`\\\"'*?[#~=%\n\t"

extern char **environ;

static pid_t pager;
static int input = -1;

/* Returns NULL if the user wants no pager. */
static const char *chosen_command(void)
{
	const char *command = getenv("TORSH_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = DEFAULT_PAGER;
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/*
 * Split the command into words, or pass it to the shell if it has special characters. Fills words,
 * which holds WORDS_MAX.
 */
static void split_command(char *command, char **words)
{
	size_t n = 0;
	char *rest = NULL;

	if (strpbrk(command, SHELL_CHARACTERS)) {
		words[n++] = (char *)"/bin/sh";
		words[n++] = (char *)"-c";
		words[n++] = command;
	} else {
		for (char *word = strtok_r(command, " ", &rest); word && n < WORDS_MAX - 1;
		     word = strtok_r(NULL, " ", &rest))
			words[n++] = word;
	}
	words[n] = NULL;
}

static int spawn(char **words, int from)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int rc;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(&pager, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* The pager uses the terminal: it has to end before the shell continues. */
static void end_by_signal(int number)
{
	torsh_pager_end();
	signal(number, SIG_DFL);
	raise(number);
}

static void watch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], end_by_signal);
}

int torsh_pager_start(void)
{
	const char *chosen = chosen_command();
	char *command, *words[WORDS_MAX];
	int ends[2], rc;

	if (!chosen || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	/* git's default: leave at once if all fits, obey colours, keep the screen. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	command = torsh_need(strdup(chosen));
	split_command(command, words);
	rc = words[0] ? spawn(words, ends[0]) : ENOENT;
	free(command);
	close(ends[0]);
	if (rc) {
		close(ends[1]);
		pager = 0;
		return -1;
	}
	input = ends[1];
	watch_signals();
	return input;
}

void torsh_pager_end(void)
{
	if (!pager)
		return;
	close(input);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
