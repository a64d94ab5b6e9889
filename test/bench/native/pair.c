/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a malloc+free pair costs: pair SITES DEPTH THREADS PAIRS
 *
 * SITES 1: one call site, DEPTH frames below the thread's first function, each block freed at once.
 * SITES 4: four call sites at DEPTH, DEPTH+1, DEPTH+2 and DEPTH+3 in turn, with 64 live blocks.
 * Every thread does PAIRS. Prints the nanoseconds that a pair took, per thread: of processor time
 * after "cpu", and on the last line of wall time. With PAIR_PAUSED in the environment the
 * recording is paused before.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "shim/ranges/torsh.h"

#define LIVE 64
#define THREADS_MAX 64

struct span {
	uint64_t start_ns, end_ns;
};

static int n_sites, n_threads, depth;
static long n_pairs;
static pthread_barrier_t ready;
static struct span spans[THREADS_MAX];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_one_site(void)
{
	for (long i = 0; i < n_pairs; i++) {
		void *volatile block = malloc(64);

		free(block);
	}
}

__attribute__((noinline)) static void *site_0(long i)
{
	void *volatile block = malloc(32 + (i & 15));

	return block;
}

__attribute__((noinline)) static void *site_1(long i)
{
	void *volatile block = site_0(i);

	return block;
}

__attribute__((noinline)) static void *site_2(long i)
{
	void *volatile block = site_1(i);

	return block;
}

__attribute__((noinline)) static void *site_3(long i)
{
	void *volatile block = site_2(i);

	return block;
}

static void run_four_sites(void)
{
	void *live[LIVE] = {0};

	for (long i = 0; i < n_pairs; i += 4) {
		void **slot = &live[i % LIVE];

		free(slot[0]);
		slot[0] = site_0(i);
		free(slot[1]);
		slot[1] = site_3(i);
		free(slot[2]);
		slot[2] = site_1(i);
		free(slot[3]);
		slot[3] = site_2(i);
	}
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
}

/* Each level has its own frame: the result is used after the call. */
__attribute__((noinline)) static int descend(int levels)
{
	volatile int below;

	if (levels > 0)
		below = descend(levels - 1);
	else if (n_sites == 1)
		below = (run_one_site(), 0);
	else
		below = (run_four_sites(), 0);
	return below + 1;
}

static void *run_thread(void *argument)
{
	struct span *span = argument;

	pthread_barrier_wait(&ready);
	span->start_ns = now_ns();
	descend(depth);
	span->end_ns = now_ns();
	return NULL;
}

/* From when the first thread began until the last was done. */
static uint64_t whole_span_ns(void)
{
	struct span whole = spans[0];

	for (int i = 1; i < n_threads; i++) {
		if (spans[i].start_ns < whole.start_ns)
			whole.start_ns = spans[i].start_ns;
		if (spans[i].end_ns > whole.end_ns)
			whole.end_ns = spans[i].end_ns;
	}
	return whole.end_ns - whole.start_ns;
}

static double cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
	       ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];

	if (argc != 5)
		return 2;
	n_sites = atoi(argv[1]);
	depth = atoi(argv[2]);
	n_threads = atoi(argv[3]);
	n_pairs = atol(argv[4]);
	if (n_threads < 1 || n_threads > THREADS_MAX)
		return 2;
	if (getenv("PAIR_PAUSED") && torsh_pause())
		return 3;
	pthread_barrier_init(&ready, NULL, (unsigned)n_threads);
	for (int i = 0; i < n_threads; i++) {
		if (pthread_create(&threads[i], NULL, run_thread, &spans[i]))
			return 1;
	}
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("cpu %.2f\n", cpu_ns() / (double)n_pairs / n_threads);
	printf("%.2f\n", (double)whole_span_ns() / (double)n_pairs);
	return 0;
}
