/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Waves of threads, for tests of the thread of an event: each thread has its identity in the names
 * of its ranges.
 *
 *	waves THREADS	a wave for each line of stdin; after it "TID ALLOCATIONS" of each of its threads and an empty line
 *
 * The threads of a wave live at the same time, so that no two of them share a tid.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define THREADS_MAX 64
#define RANGES 20

struct member {
	pthread_t thread;
	int number, tid, n_allocs;
};

static struct member members[THREADS_MAX];
static pthread_barrier_t all_there;

static void *be_in_wave(void *context)
{
	struct member *member = context;
	char name[32];

	member->tid = (int)gettid();
	snprintf(name, sizeof(name), "tid %d", member->tid);
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < RANGES; i++) {
		torsh_range_push(name);
		for (int k = 0; k <= member->number; k++, member->n_allocs++) {
			void *volatile block = malloc(64);

			free(block);
		}
		torsh_range_pop();
	}
	pthread_barrier_wait(&all_there);
	return NULL;
}

int main(int argc, char **argv)
{
	int n_threads = argc > 1 ? atoi(argv[1]) : 1, c;

	if (n_threads < 1 || n_threads > THREADS_MAX)
		return 2;
	pthread_barrier_init(&all_there, NULL, (unsigned)n_threads);
	while ((c = getchar()) != EOF) {
		if (c != '\n')
			continue;
		for (int i = 0; i < n_threads; i++) {
			members[i] = (struct member){.number = i};
			pthread_create(&members[i].thread, NULL, be_in_wave, &members[i]);
		}
		for (int i = 0; i < n_threads; i++)
			pthread_join(members[i].thread, NULL);
		for (int i = 0; i < n_threads; i++)
			printf("%d %d\n", members[i].tid, members[i].n_allocs);
		puts("");
		fflush(stdout);
	}
	return 0;
}
