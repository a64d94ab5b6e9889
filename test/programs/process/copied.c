/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Exits with blocks that are lost and blocks that are kept. What its arguments request decides how
 * its memory can be read:
 *
 *	large		it has 64 MiB in blocks
 *	small		it has hardly more than the C library
 *	unforked	the only pointer to a kept block is in memory that a fork lacks
 *	reaper		orphans become its children
 *	threads		eight threads allocate and free until the end
 *	limited		it may not have one more process
 *	timers		signals are handled a thousand times a second, also while it ends
 *
 * Prints a sum over its blocks, and ends with status 3.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define N_LARGE 16384
#define BLOCK_BYTES 4096

static char **kept;
static volatile uintptr_t hidden; /* a number, no pointer */

__attribute__((noinline)) static void lose(void)
{
	char *lost = malloc(7777);

	memset(lost, 1, 7777);
	hidden = ~(uintptr_t)lost;
}

static void keep_large(void)
{
	kept = calloc(N_LARGE, sizeof(*kept));
	for (int i = 0; i < N_LARGE; i++)
		kept[i] = memset(malloc(BLOCK_BYTES), i, BLOCK_BYTES);
}

/* A page of pointers that no fork gets. */
static void keep_unforked(void)
{
	char **page =
		mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[1] = malloc(5555);
	memset(page[1], 2, 5555);
	madvise(page, BLOCK_BYTES, MADV_DONTFORK);
}

static void *churn(void *unused)
{
	(void)unused;
	for (;;) {
		char *volatile blocks[16];

		for (int i = 0; i < 16; i++)
			blocks[i] = malloc(100 + (size_t)i * 50);
		for (int i = 0; i < 16; i++)
			free(blocks[i]);
		/* All are outside of the allocator now and then. */
		for (volatile int i = 0; i < 100000;)
			i++;
	}
	return NULL;
}

static void start_threads(void)
{
	for (int i = 0; i < 8; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, churn, NULL);
		pthread_detach(thread);
	}
}

static void limit(void)
{
	struct rlimit none = {0, 0};

	if (setuid(65534) || setrlimit(RLIMIT_NPROC, &none))
		_exit(9);
}

static volatile sig_atomic_t n_handled;

/* What a process that is looked at must not see: its pointers move. */
static void handle(int number)
{
	char **moved = kept;

	(void)number;
	kept = NULL;
	n_handled++;
	kept = moved;
}

/* Waits until the first one was handled. */
static void start_timers(void)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}};

	signal(SIGALRM, handle);
	signal(SIGPROF, handle);
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (n_handled < 3)
		;
}

static void print_sum(void)
{
	uint64_t sum = 0;

	for (int i = 0; kept && i < N_LARGE; i++)
		sum += (unsigned char)kept[i][BLOCK_BYTES - 1];
	printf("%lu\n", (unsigned long)sum);
}

int main(int n, char **arguments)
{
	lose();
	for (int i = 1; i < n; i++) {
		if (!strcmp(arguments[i], "large"))
			keep_large();
		else if (!strcmp(arguments[i], "unforked"))
			keep_unforked();
		else if (!strcmp(arguments[i], "reaper"))
			prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		else if (!strcmp(arguments[i], "threads"))
			start_threads();
		else if (!strcmp(arguments[i], "limited"))
			limit();
		else if (!strcmp(arguments[i], "timers"))
			start_timers();
	}
	print_sum();
	return 3;
}
