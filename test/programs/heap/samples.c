/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocates known sums: samples HOW. leaks: three sites that keep what they allocate. counts: in
 * threads and a forked child, with resizes and frees. killed: allocates, frees, and kills itself.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 3

static void *volatile kept;

static void keep_small(void)
{
	for (int i = 0; i < 20000; i++)
		kept = malloc(64);
}

static void keep_medium(void)
{
	for (int i = 0; i < 300; i++)
		kept = malloc(8000);
}

static void keep_large(void)
{
	for (int i = 0; i < 100; i++)
		kept = malloc(40000);
}

static void *use(void *unused)
{
	for (size_t i = 1; i < 3000; i++) {
		void *block = malloc(i), *other = calloc(3, i);

		block = realloc(block, 2 * i);
		free(i % 7 ? other : block);
	}
	return unused;
}

static void use_in_threads(void)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, use, NULL);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc > 1 && !strcmp(argv[1], "leaks")) {
		keep_small();
		keep_medium();
		keep_large();
		return 0;
	}
	use_in_threads();
	if (argc > 1 && !strcmp(argv[1], "killed")) {
		use(NULL);
		kill(getpid(), SIGKILL);
	}
	child = fork();
	use(NULL);
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
