/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads and unloads libraries in several threads. See test/fault/libraries.py.
 *
 *	loader N_THREADS N_ROUNDS LIBRARY...            prints how many blocks of KEPT_BYTES
 *	keep_block() made and kept loader fork N_THREADS N_ROUNDS LIBRARY...       the same while
 *	the first thread forks children that end at once:
 *	                                                with status 0 when all of them ended, 1 when
 *	                                                one hung
 *
 * A library has a function "twin" that calls the one that it is given.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_BYTES 48
#define HELD 3 /* libraries that a thread has open at a time */
#define THREADS_MAX 64
#define HANG_S 60
#define EXITS 4

static char **libraries;
static long n_libraries, n_rounds;
static _Atomic long n_kept;
static _Atomic bool is_over;
static void *volatile kept_last;

static void keep_block(void)
{
	kept_last = malloc(KEPT_BYTES);
	n_kept++;
}

static void call_into(void *library)
{
	void (*twin)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "twin");

	if (!twin)
		abort();
	twin(keep_block);
}

static void *load_and_unload(void *number)
{
	uint32_t random = (uint32_t)(uintptr_t)number * 2654435761u + 1;

	for (long round = 0; round < n_rounds && !is_over; round++) {
		void *held[HELD];

		for (int i = 0; i < HELD; i++) {
			random = random * 1103515245u + 12345u;
			held[i] = dlopen(libraries[(random >> 16) % n_libraries], RTLD_NOW);
			if (!held[i])
				abort();
			call_into(held[i]);
		}
		for (int i = 0; i < HELD; i++)
			dlclose(held[i]);
	}
	return NULL;
}

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *n_objects)
{
	(void)object;
	(void)n_bytes;
	++*(int *)n_objects;
	return 0;
}

static void *iterate(void *unused)
{
	int n_objects = 0;

	while (!is_over)
		dl_iterate_phdr(look_at, &n_objects);
	return unused;
}

/*
 * Children that end in each way while other threads are in the loader; whoever hangs is ended by
 * its alarm. No exit() and no quick_exit(): the C library takes a lock there that one of those
 * threads may have had.
 */
static int fork_children(void)
{
	int status, n_hung = 0;

	for (long i = 0; i < n_rounds; i++) {
		pid_t child = fork();

		if (child == 0) {
			alarm(HANG_S);
			if (i % EXITS == 0)
				_exit(0);
			if (i % EXITS == 1)
				_Exit(0);
			if (i % EXITS == 2)
				execl("/bin/true", "true", NULL);
			free(malloc(KEPT_BYTES));
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			n_hung++;
		if (n_hung)
			break;
	}
	return n_hung != 0;
}

int main(int argc, char **argv)
{
	bool is_forking = argc > 1 && !strcmp(argv[1], "fork");
	pthread_t threads[THREADS_MAX + 1];
	int at = is_forking ? 2 : 1, status = 0;
	long n_threads = atol(argv[at]);

	n_rounds = atol(argv[at + 1]);
	libraries = argv + at + 2;
	n_libraries = argc - at - 2;
	for (long i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, load_and_unload, (void *)i);
	if (is_forking) {
		pthread_create(&threads[n_threads++], NULL, iterate, NULL);
		status = fork_children();
		is_over = true;
	}
	for (long i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", n_kept);
	return status;
}
