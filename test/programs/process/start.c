/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Starts a program in one of many ways and waits for it: start WAY PROGRAM ARGUMENTS... The status
 * is the child's, or 128 and its signal. Before that it keeps a block of 111 bytes; children that
 * are forks keep one of 222 bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#define CHILD_STACK (256u << 10)

extern char **environ;
static char *const no_environment[] = {NULL};
static void *volatile kept;
static char **command;

static void keep_in_starter(void)
{
	kept = malloc(111);
}

static void keep_in_fork(void)
{
	kept = malloc(222);
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int wait_for(pid_t child)
{
	int status;

	if (child < 0)
		return 97;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 96;
	return status_of(status);
}

/* The end of a fork: it keeps a block and becomes the program. */
static void run_command(void)
{
	keep_in_fork();
	execv(command[0], command);
	_exit(95);
}

static int by_exec(void)
{
	execv(command[0], command);
	return 95;
}

static int by_exec_of_descriptor(void)
{
	fexecve(open(command[0], O_RDONLY | O_CLOEXEC), command, environ);
	return 95;
}

static int by_execveat(void)
{
	syscall(SYS_execveat, AT_FDCWD, command[0], command, environ, 0);
	return 95;
}

static int by_fork(void)
{
	pid_t child = fork();

	if (!child)
		run_command();
	return wait_for(child);
}

static int by_raw_fork(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (!child)
		run_command();
	return wait_for(child);
}

static int by_clone3(void)
{
	struct clone_args arguments = {.exit_signal = SIGCHLD};
	pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (!child)
		run_command();
	return child < 0 && errno == ENOSYS ? 77 : wait_for(child);
}

static int run_on_own_stack(void *unused)
{
	(void)unused;
	run_command();
	return 95;
}

static int by_clone_with(int flags)
{
	char *stack =
		mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return wait_for(clone(run_on_own_stack, stack + CHILD_STACK, flags | SIGCHLD, NULL));
}

static int by_clone(void)
{
	return by_clone_with(0);
}

/* As posix_spawn does it. */
static int by_clone_of_memory(void)
{
	return by_clone_with(CLONE_VM | CLONE_VFORK);
}

static int by_vfork(void)
{
	pid_t child = vfork();

	if (!child) {
		execve(command[0], command, no_environment);
		_exit(95);
	}
	return wait_for(child);
}

static int by_spawn(void)
{
	pid_t child;

	return posix_spawn(&child, command[0], NULL, NULL, command, no_environment)
		       ? 95
		       : wait_for(child);
}

static int by_spawnp(void)
{
	pid_t child;

	return posix_spawnp(&child, command[0], NULL, NULL, command, environ) ? 95
									      : wait_for(child);
}

/* The command as one line for a shell; its words hold nothing that a shell would change. */
static char *command_line(void)
{
	static char line[PATH_MAX * 2];

	for (char **word = command; *word; word++) {
		strcat(line, *word);
		strcat(line, " ");
	}
	return line;
}

static int by_system(void)
{
	return status_of(system(command_line()));
}

static int by_popen(void)
{
	FILE *pipe = popen(command_line(), "r");

	while (fgetc(pipe) != EOF)
		;
	return status_of(pclose(pipe));
}

static int by_wordexp(void)
{
	static char line[PATH_MAX * 2 + 8];
	wordexp_t words;

	snprintf(line, sizeof(line), "$(%s)", command_line());
	return wordexp(line, &words, 0) ? 94 : 0;
}

/* The program can't be executed: the fork goes on without, and ends by itself. */
static int by_failing_exec(void)
{
	pid_t child = fork();

	if (!child) {
		keep_in_fork();
		execv("/nonexistent/program", command);
		_exit(17);
	}
	return wait_for(child);
}

static int by_failing_vfork(void)
{
	pid_t child = vfork();

	if (!child) {
		execve("/nonexistent/program", command, no_environment);
		_exit(18);
	}
	return wait_for(child);
}

/*
 * A daemon as the book has it: its parent is gone, and so is every descriptor. Whoever reads the
 * pipe waits for it.
 */
static int as_daemon(void)
{
	pid_t child = fork();

	if (child)
		return wait_for(child);
	setsid();
	child = fork();
	if (child)
		_exit(0);
	if (chdir("/"))
		_exit(93);
	for (int fd = getdtablesize(); fd-- > 0;)
		close(fd);
	keep_in_fork();
	execve(command[0], command, no_environment);
	_exit(95);
}

/* The parent ends first; the child goes on when it has another one. */
static int outliving(void)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return 19;
	while (getppid() == parent)
		sched_yield();
	run_command();
	return 95;
}

static const struct way {
	const char *name;
	int (*start)(void);
} ways[] = {
	{"exec", by_exec},
	{"fexecve", by_exec_of_descriptor},
	{"execveat", by_execveat},
	{"fork", by_fork},
	{"raw_fork", by_raw_fork},
	{"clone3", by_clone3},
	{"clone", by_clone},
	{"clone_of_memory", by_clone_of_memory},
	{"vfork", by_vfork},
	{"spawn", by_spawn},
	{"spawnp", by_spawnp},
	{"system", by_system},
	{"popen", by_popen},
	{"wordexp", by_wordexp},
	{"failing_exec", by_failing_exec},
	{"failing_vfork", by_failing_vfork},
	{"daemon", as_daemon},
	{"outliving", outliving},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	command = argv + 2;
	keep_in_starter();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].name))
			return ways[i].start();
	}
	return 2;
}
