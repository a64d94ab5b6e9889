/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	wasteful churn N | large N | steps N | faults N | threads N
 *
 * Wastes in a known way: N blocks of 64 bytes, or of 1 MiB, that are freed at once; a block of 8
 * MiB in each of N steps; 1 MiB that is mapped, touched and unmapped N times; N threads for one to
 * two seconds on one CPU. Prints the page faults that the kernel counted for it.
 */
#define _GNU_SOURCE /* sched_setaffinity, MADV_NOHUGEPAGE */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define MIB ((size_t)1 << 20)

static void *volatile block;

static void free_at_once(long n, size_t bytes)
{
	for (long i = 0; i < n; i++) {
		block = malloc(bytes);
		free(block);
	}
}

static void make_buffers(long n)
{
	for (long i = 0; i < n; i++) {
		torsh_step((uint64_t)i);
		block = malloc(8 * MIB);
		free(malloc(100));
		free(block);
	}
}

static void map_again(long n)
{
	for (long i = 0; i < n; i++) {
		char *memory =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			exit(1);
		madvise(memory, MIB, MADV_NOHUGEPAGE);
		memset(memory, 1, MIB);
		munmap(memory, MIB);
	}
}

static void *spin(void *until)
{
	struct timespec now;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < *(const time_t *)until);
	return NULL;
}

static void spin_together(long n)
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	struct timespec now;
	time_t until;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (!threads || sched_setaffinity(0, sizeof(cpus), &cpus))
		exit(1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec + 2;
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, spin, &until);
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	struct rusage usage;

	if (strcmp(what, "churn") == 0)
		free_at_once(n, 64);
	else if (strcmp(what, "large") == 0)
		free_at_once(n, MIB);
	else if (strcmp(what, "steps") == 0)
		make_buffers(n);
	else if (strcmp(what, "faults") == 0)
		map_again(n);
	else if (strcmp(what, "threads") == 0)
		spin_together(n);
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld\n", usage.ru_minflt);
	return 0;
}
