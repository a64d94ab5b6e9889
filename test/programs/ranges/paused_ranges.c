/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	paused_ranges [pause]
 *
 * Ranges, marks, values and blocks of memory by torsh.h on two threads: N before, N amid, N after,
 * where "pause" pauses the recording amid. Some ranges begin in one part and end in the next.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#define N 300
#define BLOCK_BYTES 100

static pthread_barrier_t barrier;
static void *kept[3][N];

static void work(const char *name, int part)
{
	for (int i = 0; i < N; i++) {
		torsh_range_push(name);
		torsh_range_push("inner");
		torsh_mark(name);
		torsh_range_pop();
		torsh_range_pop();
		torsh_range_end(torsh_range_start(name));
		torsh_scalar(name, i);
		if (part >= 0)
			kept[part][i] = malloc(BLOCK_BYTES);
	}
}

/* Both threads are in the same part. */
static void next_part(bool pauses, int (*change)(void))
{
	pthread_barrier_wait(&barrier);
	if (pauses && change())
		abort();
	pthread_barrier_wait(&barrier);
}

static void run_parts(bool pauses, int first_part)
{
	uint64_t over_begin, over_end, amid;

	torsh_range_push("whole");
	work("before", first_part);
	torsh_range_push("over the begin");
	over_begin = torsh_range_start("started before");
	next_part(pauses, torsh_pause);
	work("amid", first_part < 0 ? -1 : 1);
	torsh_range_pop();
	torsh_range_end(over_begin);
	amid = torsh_range_start("started amid");
	over_end = torsh_range_start("started amid");
	torsh_range_push("over the end");
	torsh_range_push("over the end, inner");
	torsh_range_end(amid);
	next_part(pauses, torsh_resume);
	/* A range of the same domain within those that were not recorded, then their ends. */
	torsh_range_push("after, within");
	torsh_range_pop();
	torsh_range_pop();
	torsh_range_pop();
	torsh_range_end(over_end);
	work("after", first_part < 0 ? -1 : 2);
	torsh_range_pop();
}

static void *run_other(void *unused)
{
	(void)unused;
	run_parts(false, -1);
	return NULL;
}

/* The odd ones are freed: blocks from before and from amid, too. */
static void free_half(void)
{
	for (int part = 0; part < 3; part++)
		for (int i = 1; i < N; i += 2)
			free(kept[part][i]);
	memset(kept, 0, sizeof(kept));
}

int main(int argc, char **argv)
{
	bool pauses = argc > 1 && !strcmp(argv[1], "pause");
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&other, NULL, run_other, NULL);
	run_parts(pauses, 0);
	pthread_join(other, NULL);
	free_half();
	return 0;
}
