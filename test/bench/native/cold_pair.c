/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a malloc+free pair costs when the processor's caches hold other data, as between two blocks
 * of a training step: cold_pair WAYS DEPTH KIB PAIRS
 *
 * Before each pair KIB are written. Then the next of WAYS (at most 64) stacks of one depth leads to
 * the pair, DEPTH frames below main. Prints the nanoseconds of a pair; the rest is not timed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAY_BITS 6
#define WAYS_MAX (1u << WAY_BITS)

static unsigned n_ways;
static size_t n_evicted_bytes;
static long n_pairs;
static char *evicted;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void *odd(unsigned bits, int n);

/* Each level's return address is one of two: that of a call here, or in odd(). */
__attribute__((noinline)) static void *even(unsigned bits, int n)
{
	void *volatile block;

	if (n == 0)
		block = malloc(64);
	else
		block = bits & 1 ? odd(bits >> 1, n - 1) : even(bits >> 1, n - 1);
	return block;
}

__attribute__((noinline)) static void *odd(unsigned bits, int n)
{
	void *volatile block;

	if (n == 0)
		block = malloc(64);
	else
		block = bits & 1 ? odd(bits >> 1, n - 1) : even(bits >> 1, n - 1);
	return block;
}

static uint64_t run_pairs(void)
{
	uint64_t total_ns = 0;

	for (long i = 0; i < n_pairs; i++) {
		uint64_t before;

		memset(evicted, (int)i, n_evicted_bytes);
		before = now_ns();
		free(even((unsigned)i % n_ways, WAY_BITS));
		total_ns += now_ns() - before;
	}
	return total_ns;
}

/* Each level has its own frame: the result is used after the call. */
__attribute__((noinline)) static uint64_t descend(int levels)
{
	volatile uint64_t total_ns = levels > 0 ? descend(levels - 1) : run_pairs();

	return total_ns;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	n_ways = (unsigned)atoi(argv[1]);
	n_evicted_bytes = (size_t)atol(argv[3]) << 10;
	n_pairs = atol(argv[4]);
	evicted = malloc(n_evicted_bytes + 1);
	if (!evicted || n_ways < 1 || n_ways > WAYS_MAX || n_pairs < 1)
		return 2;
	printf("%.2f\n", (double)descend(atoi(argv[2])) / (double)n_pairs);
	free(evicted);
	return 0;
}
