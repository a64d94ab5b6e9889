/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Processes of one program at once: siblings PROGRAM. On stdin come pairs of letters: the digit of
 * a sibling, which is started at its first pair, and a letter that is passed on to it and answered
 * by it, as obeys.c does; '.' ends it. Each letter of a pair is answered with a '.' on stdout.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIBLINGS 10

extern char **environ;

struct sibling {
	pid_t pid; /* 0: not started, or ended */
	int in, out;
};

static struct sibling siblings[SIBLINGS];

static void start(struct sibling *sibling, char *program)
{
	posix_spawn_file_actions_t actions;
	char *arguments[] = {program, NULL};
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO) ||
	    posix_spawn(&sibling->pid, program, &actions, NULL, arguments, environ))
		abort();
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	sibling->in = in[1];
	sibling->out = out[0];
}

static void end(struct sibling *sibling)
{
	int status;

	close(sibling->in);
	close(sibling->out);
	if (waitpid(sibling->pid, &status, 0) != sibling->pid || status)
		abort();
	*sibling = (struct sibling){0};
}

static void pass_on(struct sibling *sibling, char letter)
{
	char answer;

	if (letter == '.')
		end(sibling);
	else if (write(sibling->in, &letter, 1) != 1 || read(sibling->out, &answer, 1) != 1)
		abort();
}

int main(int argc, char **argv)
{
	struct sibling *sibling = NULL;
	char letter;

	if (argc != 2)
		return 98;
	while (read(STDIN_FILENO, &letter, 1) == 1) {
		if (sibling) {
			pass_on(sibling, letter);
			sibling = NULL;
		} else {
			sibling = &siblings[letter - '0'];
			if (!sibling->pid)
				start(sibling, argv[1]);
		}
		if (write(STDOUT_FILENO, ".", 1) != 1)
			return 1;
	}
	return 0;
}
