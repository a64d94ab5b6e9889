/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	scheduled STEPS [unmarked]
 *
 * Does something else in each step, by torsh.h: step i, with the number 100 + i, has i + 1 ranges
 * "work" with an "inner" and a mark in each, as many on another thread, ranges that end in the next
 * step, and leaks 1000 + i bytes. unmarked: the steps are not marked.
 */
#include <stdbool.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#define FIRST_NUMBER 100

static void work(long n)
{
	for (long i = 0; i < n; i++) {
		torsh_range_push("work");
		torsh_range_push("inner");
		torsh_mark("moment");
		torsh_range_pop();
		torsh_range_pop();
	}
}

static void *work_elsewhere(void *n)
{
	torsh_range_push("elsewhere");
	work((long)(intptr_t)n);
	torsh_range_pop();
	return NULL;
}

static void leak(long i)
{
	void *volatile kept = malloc(1000 + (size_t)i);

	(void)kept;
}

int main(int argc, char **argv)
{
	long n_steps = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	bool is_unmarked = argc > 2 && !strcmp(argv[2], "unmarked");
	uint64_t handed_over = 0;
	pthread_t thread;

	torsh_range_push("whole");
	torsh_range_push("setup");
	torsh_range_pop();
	for (long i = 0; i < n_steps; i++) {
		if (!is_unmarked)
			torsh_step(FIRST_NUMBER + (uint64_t)i);
		if (i)
			torsh_range_pop();
		torsh_range_end(handed_over);
		work(i + 1);
		pthread_create(&thread, NULL, work_elsewhere, (void *)(intptr_t)(i + 1));
		pthread_join(thread, NULL);
		leak(i);
		torsh_scalar("loss", (double)i);
		handed_over = torsh_range_start("handed over");
		torsh_range_push("into the next");
	}
	torsh_range_end(handed_over);
	torsh_range_pop();
	torsh_range_pop();
	return 0;
}
