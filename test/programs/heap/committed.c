/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocates, and counts its calls in a file mapped shared, so that the number survives whatever
 * happens to the process. See test/fault.
 *
 *	committed COUNTS N_BLOCKS N_THREADS HOW
 *
 * COUNTS is a file of 64 numbers of 64 bits: [i] blocks that thread i has and keeps, [32] 1 once
 * all are there. Every kept block has KEPT_BYTES and comes from keep_block(); between two of them a
 * block is allocated and freed again. Then the process ends in the way of HOW, once [33] is 0.
 * Where that is "slowly" there are a thousand blocks a second at most.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_BYTES 48
#define SLOW_US 1000
#define COUNTS 64
#define ALL_THERE 32
#define HELD 33
#define THREADS_MAX 32

static _Atomic uint64_t *counts;
static uint64_t n_blocks;
static bool is_slow;
static void *volatile kept_last;
static pthread_barrier_t all_done;

static void keep_block(void)
{
	kept_last = malloc(KEPT_BYTES);
	if (!kept_last)
		abort();
}

static void churn_block(void)
{
	free(malloc(200));
}

static void *keep_blocks(void *number)
{
	for (uint64_t i = 0; i < n_blocks; i++) {
		keep_block();
		/* Says "it happened" only after it did. */
		atomic_fetch_add_explicit(&counts[(uintptr_t)number], 1, memory_order_release);
		churn_block();
		if (is_slow)
			usleep(SLOW_US);
	}
	pthread_barrier_wait(&all_done);
	return NULL;
}

static void run_threads(uintptr_t n)
{
	pthread_t threads[THREADS_MAX];

	pthread_barrier_init(&all_done, NULL, (unsigned)n);
	for (uintptr_t i = 1; i < n; i++) {
		if (pthread_create(&threads[i], NULL, keep_blocks, (void *)i))
			abort();
	}
	keep_blocks(NULL);
	for (uintptr_t i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void end_as(const char *how, char **argv)
{
	if (!strcmp(how, "wait"))
		for (;;)
			pause();
	if (!strcmp(how, "segfault"))
		*(volatile int *)kept_last = *(volatile int *)8;
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "assert"))
		assert(!n_blocks);
	if (!strcmp(how, "assert_perror"))
		assert_perror((int)n_blocks % 2 + EINVAL);
	if (!strcmp(how, "overflow"))
		__builtin___memset_chk(kept_last, 0, KEPT_BYTES + n_blocks, KEPT_BYTES);
	if (!strcmp(how, "double_free")) {
		free(kept_last);
		free(kept_last);
	}
	if (!strcmp(how, "_exit"))
		_exit(5);
	if (!strcmp(how, "_Exit"))
		_Exit(6);
	if (!strcmp(how, "quick_exit"))
		quick_exit(7);
	if (!strcmp(how, "exit"))
		exit(8);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "exec"))
		execl(argv[0], argv[0], argv[1], argv[2], argv[3], "return", NULL);
	if (!strcmp(how, "exec_fails"))
		execl("/nonexistent/program", "program", NULL);
	if (!strcmp(how, "closefrom")) {
		for (int fd = getdtablesize(); fd-- > 3;)
			close(fd);
		keep_blocks(NULL);
	}
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 5)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, COUNTS * sizeof(*counts)))
		return 3;
	counts = mmap(NULL, COUNTS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		return 4;
	n_blocks = strtoull(argv[2], NULL, 10);
	is_slow = !strcmp(argv[4], "slowly");
	run_threads(strtoull(argv[3], NULL, 10));
	atomic_store(&counts[ALL_THERE], 1);
	while (atomic_load(&counts[HELD]))
		usleep(1000);
	end_as(argv[4], argv);
	return 9;
}
