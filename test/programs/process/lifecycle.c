/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Processes and threads that begin and end in many ways: lifecycle WAY [PROGRAM]. What each way
 * keeps is in test/e2e/process/lifecycle.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_KEPT 5

static void *kept[N_KEPT];
static const char *other_program;
static char *after_arguments; /* where the kernel put the environment */

static void *keep_in_parent(void)
{
	return malloc(300);
}

static void *keep_in_child(void)
{
	return malloc(400);
}

static void *keep_in_thread(void)
{
	return malloc(500);
}

static void *keep_at_exit(void)
{
	return malloc(600);
}

static int wait_for(pid_t child)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child)
		return 100;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void fill(void)
{
	for (int i = 0; i < N_KEPT; i++)
		kept[i] = keep_in_parent();
}

static int fork_once(void)
{
	pid_t child;

	fill();
	child = fork();
	if (!child) {
		free(kept[0]);
		free(kept[1]);
		for (int i = 0; i < 3; i++)
			kept[i] = keep_in_child();
		exit(21);
	}
	free(kept[4]);
	return wait_for(child);
}

static void *run_thread(void *lock)
{
	for (int i = 0; i < 1000; i++)
		free(keep_in_thread());
	pthread_mutex_lock(lock);
	keep_in_thread();
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Children of a process with other threads in the middle of malloc. */
static int fork_with_threads(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[4];
	int status = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run_thread, &lock);
	for (int i = 0; i < 50 && !status; i++) {
		pid_t child = fork();

		if (!child) {
			kept[0] = keep_in_child();
			_exit(0);
		}
		status = wait_for(child);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return status;
}

static int fork_of_fork(void)
{
	pid_t child = fork();

	if (child)
		return wait_for(child);
	kept[0] = keep_in_child();
	child = fork();
	if (child)
		_exit(wait_for(child));
	kept[1] = keep_in_child();
	_exit(22);
}

static int vfork_and_exit(void)
{
	volatile int status;
	pid_t child;

	fill();
	child = vfork();
	if (!child)
		_exit(23);
	status = wait_for(child);
	return status;
}

static int vfork_and_exec(void)
{
	pid_t child = vfork();

	if (!child) {
		execl(other_program, other_program, NULL);
		_exit(99);
	}
	fill();
	return wait_for(child);
}

static int spawn(void)
{
	char *const arguments[] = {(char *)other_program, NULL};
	char *const nothing[] = {NULL};
	pid_t child;

	/* An environment that the caller scrubbed. */
	if (posix_spawn(&child, other_program, NULL, NULL, arguments, nothing))
		return 98;
	fill();
	return wait_for(child);
}

static int exec_without_environment(void)
{
	char *const arguments[] = {(char *)other_program, NULL};
	char *const nothing[] = {NULL};

	fill();
	execve(other_program, arguments, nothing);
	return 97;
}

/*
 * As programs do that show a text of their own in ps: the environment moves, its first place is
 * written over.
 */
static int overwritten_environment(void)
{
	char *const arguments[] = {(char *)other_program, NULL};
	char *end = (char *)getauxval(AT_EXECFN);
	char **moved;
	size_t n = 0;

	while (environ[n])
		n++;
	moved = calloc(n + 1, sizeof(*moved));
	for (size_t i = 0; i < n; i++)
		moved[i] = strdup(environ[i]);
	environ = moved;
	memset(after_arguments, 'x', (size_t)(end - after_arguments));
	execv(other_program, arguments);
	return 97;
}

static int shell(void)
{
	fill();
	return WEXITSTATUS(system("exit 24"));
}

static void *block_of_exit;

static void free_at_exit(void)
{
	free(block_of_exit);
	block_of_exit = keep_at_exit();
}

static int at_exit(void)
{
	block_of_exit = keep_in_parent();
	atexit(free_at_exit);
	return 25;
}

static pthread_key_t key;
static __thread void *of_thread;

static void free_of_thread(void *block)
{
	free(block);
	/* Allocated when the thread is almost gone, and freed in the next round of destructors. */
	if (of_thread) {
		free(of_thread);
		of_thread = NULL;
		pthread_setspecific(key, malloc(700));
	}
}

static void *run_with_destructors(void *unused)
{
	of_thread = malloc(701);
	pthread_setspecific(key, malloc(702));
	return unused;
}

static int threads_with_destructors(void)
{
	pthread_t thread;

	pthread_key_create(&key, free_of_thread);
	for (int i = 0; i < 300; i++) {
		if (pthread_create(&thread, NULL, run_with_destructors, NULL))
			return 96;
		pthread_join(thread, NULL);
	}
	return 26;
}

static void *align_hundred(void *unused)
{
	for (int i = 0; i < 100; i++) {
		void *block;

		if (posix_memalign(&block, 64, 501))
			abort();
	}
	return unused;
}

static int hundred_threads(void)
{
	pthread_t threads[100];

	for (int i = 0; i < 100; i++) {
		if (pthread_create(&threads[i], NULL, align_hundred, NULL))
			return 95;
	}
	for (int i = 0; i < 100; i++)
		pthread_join(threads[i], NULL);
	return 27;
}

/* Ended by a signal with the default handler, in the middle of everything. */
static int terminated(void)
{
	fill();
	raise(SIGTERM);
	return 94;
}

static int with_closed_streams(void)
{
	close(0);
	close(1);
	close(2);
	fill();
	/* The lowest free numbers are the program's own. */
	return open("/dev/null", O_RDONLY) == 0 && open("/dev/null", O_RDONLY) == 1 ? 28 : 93;
}

static const struct way {
	const char *name;
	int (*run)(void);
} ways[] = {
	{"fork", fork_once},
	{"fork_with_threads", fork_with_threads},
	{"fork_of_fork", fork_of_fork},
	{"vfork_and_exit", vfork_and_exit},
	{"vfork_and_exec", vfork_and_exec},
	{"spawn", spawn},
	{"exec_without_environment", exec_without_environment},
	{"overwritten_environment", overwritten_environment},
	{"shell", shell},
	{"at_exit", at_exit},
	{"threads_with_destructors", threads_with_destructors},
	{"hundred_threads", hundred_threads},
	{"terminated", terminated},
	{"with_closed_streams", with_closed_streams},
};

int main(int argc, char **argv)
{
	after_arguments = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
	other_program = argc > 2 ? argv[2] : NULL;
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].name))
			return ways[i].run();
	}
	return 2;
}
