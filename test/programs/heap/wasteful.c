/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	wasteful churn N | large N | steps N | faults N | threads N | holes N | packed N
 *	wasteful writing_fork N | reading_fork N
 *
 * Wastes in a known way: N blocks of 64 bytes, or of 1 MiB, that are freed at once; a block of 8
 * MiB in each of N steps; 1 MiB that is mapped, touched and unmapped N times; N threads for one to
 * two seconds on one CPU; N MiB of small blocks of which an eighth stays, here and there or
 * together, and then of large ones; a fork that writes to N MiB of its parent or reads them. Prints
 * the page faults that the kernel counted for it.
 */
#define _GNU_SOURCE /* sched_setaffinity, MADV_NOHUGEPAGE */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define MIB ((size_t)1 << 20)

static void *volatile block;
static void *volatile kept[2]; /* at the exit, when who owns the memory is looked at */

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

/* Blocks of 1,000 bytes of which every eighth stays; then n MiB that find no room between these. */
static void keep_holes(long n, bool with_holes)
{
	size_t n_small = (size_t)n * MIB / 1000;
	void **small = calloc(n_small, sizeof(*small));
	char **large = calloc((size_t)n, sizeof(*large));

	if (!small || !large)
		exit(1);
	for (size_t i = 0; i < n_small; i++)
		small[i] = calloc(1, 1000);
	for (size_t i = 0; i < n_small; i++) {
		if (with_holes ? i % 8 == 0 : i < n_small / 8)
			continue;
		free(small[i]);
		small[i] = NULL;
	}
	if (!with_holes)
		malloc_trim(0);
	for (long i = 0; i < n; i++) {
		large[i] = malloc(MIB);
		if (large[i])
			memset(large[i], 1, MIB);
	}
	kept[0] = small;
	kept[1] = large;
}

/* The fork reads, or writes, n MiB of its parent's memory. */
static void fork_after(long n, bool is_writing)
{
	size_t bytes = (size_t)n * MIB;
	char *memory = malloc(bytes);
	unsigned long sum = 0;
	pid_t pid;

	if (!memory)
		exit(1);
	memset(memory, 1, bytes);
	pid = fork();
	if (!pid) {
		for (size_t i = 0; i < bytes; i += 4096) {
			if (is_writing)
				memory[i] = 2;
			sum += (unsigned char)memory[i];
		}
		_exit(sum == 0);
	}
	waitpid(pid, NULL, 0);
	free(memory);
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
	else if (strcmp(what, "holes") == 0 || strcmp(what, "packed") == 0)
		keep_holes(n, strcmp(what, "holes") == 0);
	else if (strcmp(what, "writing_fork") == 0 || strcmp(what, "reading_fork") == 0)
		fork_after(n, strcmp(what, "writing_fork") == 0);
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld\n", usage.ru_minflt);
	return 0;
}
