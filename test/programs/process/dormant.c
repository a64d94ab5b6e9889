/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Does what each letter on stdin stands for and answers with a dot, until stdin ends. It allocates
 * nothing else. The letter 'i' prints a line about itself.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define N 100
#define OLD_BYTES 100
#define LEAK_BYTES 1234
#define PAIRS 100000

static void *old[N];
static void *volatile kept;
static char **arguments;

static void allocate_old(void)
{
	for (int i = 0; i < N; i++)
		old[i] = malloc(OLD_BYTES);
}

static void resize_old(void)
{
	for (int i = 0; i < N / 2; i++)
		old[i] = realloc(old[i], 2 * OLD_BYTES);
}

static void free_old(void)
{
	for (int i = 0; i < N; i++)
		free(old[i]);
}

static void leak(void)
{
	for (int i = 0; i < 10; i++)
		kept = malloc(LEAK_BYTES);
}

static void *leak_elsewhere(void *unused)
{
	leak();
	return unused;
}

static void run_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, leak_elsewhere, NULL);
	pthread_join(thread, NULL);
}

static void mark_ranges(void)
{
	for (int i = 0; i < N; i++) {
		torsh_range_push("marked");
		torsh_range_pop();
	}
}

static void run_child(void)
{
	pid_t child = fork();

	if (!child) {
		leak();
		exit(0);
	}
	waitpid(child, NULL, 0);
}

static void run_vfork_child(bool executes)
{
	pid_t child = vfork();

	if (!child) {
		if (executes)
			execl("/nonexistent", "nothing", NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* What another program would notice of it. */
static void print_self(void)
{
	char line[200];
	int n_handled = 0;

	for (int i = 1; i < NSIG; i++) {
		struct sigaction action = {0};

		sigaction(i, NULL, &action);
		n_handled += action.sa_handler != SIG_DFL;
	}
	errno = 0;
	free(malloc(10));
	snprintf(line, sizeof(line),
		 "descriptors %d, threads %d, handlers %d, errno %d, there %d\n",
		 count_entries("/proc/self/fd"), count_entries("/proc/self/task"), n_handled, errno,
		 torsh_is_there());
	(void)!write(STDOUT_FILENO, line, strlen(line));
}

static void make_pairs(void)
{
	for (int i = 0; i < PAIRS; i++) {
		kept = malloc(16);
		free(kept);
	}
}

static void become_itself(void)
{
	(void)!write(STDOUT_FILENO, ".", 1);
	execv("/proc/self/exe", arguments);
	abort();
}

static void obey(char letter)
{
	switch (letter) {
	case 'a':
		allocate_old();
		break;
	case 'r':
		resize_old();
		break;
	case 'f':
		free_old();
		break;
	case 'l':
		leak();
		break;
	case 't':
		run_thread();
		break;
	case 'm':
		mark_ranges();
		break;
	case 'c':
		run_child();
		break;
	case 'v':
		run_vfork_child(false);
		break;
	case 'w':
		run_vfork_child(true);
		break;
	case 'y':
		execl("/nonexistent", "nothing", NULL);
		break;
	case 'x':
		become_itself();
		break;
	case 's':
		torsh_resume();
		break;
	case 'p':
		torsh_pause();
		break;
	case 'i':
		print_self();
		break;
	case 'n':
		make_pairs();
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	char letter;

	(void)argc;
	arguments = argv;
	while (read(STDIN_FILENO, &letter, 1) == 1) {
		obey(letter);
		(void)!write(STDOUT_FILENO, ".", 1);
	}
	return 0;
}
