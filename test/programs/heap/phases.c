/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Phases whose live blocks by function are known exactly at the mark that ends each of them.
 *
 *	phases		prints "MARK FUNCTION BYTES BLOCKS" for each mark and function with live blocks
 *
 * Each phase allocates and frees blocks of three functions by turns, by a generator of its own, and
 * waits between so that regular moments lie between the marks.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shim/ranges/torsh.h"

#define N_PHASES 6
#define CHANGES 3000
#define N_KEEPERS 3
#define KEPT_MAX (N_PHASES * CHANGES)

static struct keeper {
	void **blocks;
	size_t *sizes;
	uint64_t n, bytes;
} keepers[N_KEEPERS];

#define KEEPER(name)                                             \
	__attribute__((noinline)) static void *name(size_t size) \
	{                                                        \
		void *volatile block = malloc(size);             \
                                                                 \
		return block;                                    \
	}
KEEPER(keep_first)
KEEPER(keep_second)
KEEPER(keep_third)

static void *(*const functions[N_KEEPERS])(size_t) = {keep_first, keep_second, keep_third};
static const char *const names[N_KEEPERS] = {"keep_first", "keep_second", "keep_third"};

static void change(uint64_t random)
{
	struct keeper *keeper = &keepers[random % N_KEEPERS];

	if (random >> 8 & 1 || !keeper->n) {
		keeper->sizes[keeper->n] = 1 + (random >> 16) % 5000;
		keeper->blocks[keeper->n] = functions[random % N_KEEPERS](keeper->sizes[keeper->n]);
		keeper->bytes += keeper->sizes[keeper->n++];
	} else {
		free(keeper->blocks[--keeper->n]);
		keeper->bytes -= keeper->sizes[keeper->n];
	}
}

static void empty(struct keeper *keeper)
{
	while (keeper->n) {
		free(keeper->blocks[--keeper->n]);
		keeper->bytes -= keeper->sizes[keeper->n];
	}
}

int main(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t random = 88172645463325252u;
	char out[4096];
	size_t n_out = 0;

	for (int i = 0; i < N_KEEPERS; i++) {
		keepers[i].blocks = calloc(KEPT_MAX, sizeof(void *));
		keepers[i].sizes = calloc(KEPT_MAX, sizeof(size_t));
	}
	for (int phase = 0; phase < N_PHASES; phase++) {
		char mark[16];

		for (int i = 0; i < CHANGES; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			change(random);
			if (i % 300 == 0)
				nanosleep(&pause, NULL);
		}
		if (phase == N_PHASES / 2)
			empty(&keepers[1]);
		snprintf(mark, sizeof(mark), "phase %d", phase);
		torsh_mark(mark);
		for (int i = 0; i < N_KEEPERS; i++)
			n_out += (size_t)snprintf(out + n_out, sizeof(out) - n_out,
						  "phase%d %s %llu %llu\n", phase, names[i],
						  (unsigned long long)keepers[i].bytes,
						  (unsigned long long)keepers[i].n);
	}
	fwrite(out, 1, n_out, stdout);
	return 0;
}
