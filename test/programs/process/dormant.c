/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Does what each letter on stdin stands for and answers with a dot, until stdin ends. It allocates
 * nothing else. The letter 'i' prints a line about itself.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

#define N_BUSY 3

static pthread_t busy[N_BUSY];
static atomic_bool is_busy;

static void *make_blocks(void *unused)
{
	while (atomic_load(&is_busy)) {
		void *volatile block = malloc(64);

		torsh_range_push("busy");
		free(block);
		torsh_range_pop();
	}
	return unused;
}

static void begin_threads(void)
{
	atomic_store(&is_busy, true);
	for (int i = 0; i < N_BUSY; i++)
		pthread_create(&busy[i], NULL, make_blocks, NULL);
}

static void end_threads(void)
{
	atomic_store(&is_busy, false);
	for (int i = 0; i < N_BUSY; i++)
		pthread_join(busy[i], NULL);
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

static int to_child[2], from_child[2];

/* A child of which no wrapper knows: it leaks for each byte that it gets, until the pipe ends. */
static void begin_quiet_child(void)
{
	char byte;

	if (pipe(to_child) || pipe(from_child))
		abort();
	if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) {
		close(to_child[1]);
		while (read(to_child[0], &byte, 1) == 1) {
			leak();
			(void)!write(from_child[1], &byte, 1);
		}
		exit(0);
	}
}

static void leak_in_quiet_child(void)
{
	char byte = 0;

	(void)!write(to_child[1], &byte, 1);
	(void)!read(from_child[0], &byte, 1);
}

static void end_quiet_child(void)
{
	close(to_child[1]);
	wait(NULL);
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

static void obey_of_children(char letter)
{
	switch (letter) {
	case 'c':
		run_child();
		break;
	case 'd':
		begin_quiet_child();
		break;
	case 'g':
		leak_in_quiet_child();
		break;
	case 'q':
		end_quiet_child();
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
	default:
		break;
	}
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
	case 'b':
		begin_threads();
		break;
	case 'e':
		end_threads();
		break;
	case 'm':
		mark_ranges();
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
		obey_of_children(letter);
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
