/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	window_peaks FOLDER
 *
 * Allocates and frees at random in windows that overlap, from three functions and from two threads
 * by turns, and takes a snapshot FOLDER/now.torsh at the end. Prints "WINDOW FUNCTION BYTES BLOCKS"
 * of what it had at each window's highest moment, by a list of its own.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#define N_KEEPERS 3
#define N_WINDOWS 4
#define CHANGES 2000
#define KEPT_MAX (N_WINDOWS * CHANGES * 2)

struct usage {
	uint64_t bytes, n;
};

static struct keeper {
	void *blocks[KEPT_MAX];
	size_t sizes[KEPT_MAX];
	struct usage now;
} keepers[N_KEEPERS];

static struct window {
	struct torsh_memory memory;
	uint64_t range, most;
	struct usage at_peak[N_KEEPERS];
} windows[N_WINDOWS];

static uint64_t random_state = 88172645463325252u, total;
static int n_begun, n_ended;
static pthread_barrier_t turns;

#define KEEPER(name)                                                            \
	__attribute__((noinline)) static void *name(void *old, size_t size)     \
	{                                                                       \
		void *volatile block = old ? realloc(old, size) : malloc(size); \
                                                                                \
		return block;                                                   \
	}
KEEPER(keep_first)
KEEPER(keep_second)
KEEPER(keep_third)

static void *(*const functions[N_KEEPERS])(void *, size_t) = {keep_first, keep_second, keep_third};
static const char *const names[N_KEEPERS] = {"keep_first", "keep_second", "keep_third"};

static void note(struct window *window)
{
	if (total <= window->most)
		return;
	window->most = total;
	for (int i = 0; i < N_KEEPERS; i++)
		window->at_peak[i] = keepers[i].now;
}

static void set(struct keeper *keeper, uint64_t i, size_t size)
{
	keeper->now.bytes += size - keeper->sizes[i];
	total += size - keeper->sizes[i];
	keeper->sizes[i] = size;
}

static void change(uint64_t random)
{
	struct keeper *keeper = &keepers[random % N_KEEPERS];
	size_t size = 1 + (random >> 16) % 5000;
	uint64_t kind = (random >> 8) % 8, last = keeper->now.n - 1;

	if (kind < 4 || !keeper->now.n) {
		keeper->blocks[++last] = functions[random % N_KEEPERS](NULL, size);
		keeper->now.n++;
		set(keeper, last, size);
	} else if (kind < 7) {
		free(keeper->blocks[last]);
		set(keeper, last, 0);
		keeper->now.n--;
	} else {
		keeper->blocks[last] = functions[random % N_KEEPERS](keeper->blocks[last], size);
		set(keeper, last, size);
	}
	for (int i = n_ended; i < n_begun; i++)
		note(&windows[i]);
}

static void *change_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < CHANGES / 2; i++) {
		random_state ^= random_state << 13;
		random_state ^= random_state >> 7;
		random_state ^= random_state << 17;
		change(random_state);
	}
	return NULL;
}

/* Takes its turn when both wait. */
static void *take_turns(void *unused)
{
	for (int i = 0; i <= N_WINDOWS; i++) {
		pthread_barrier_wait(&turns);
		change_often(unused);
		pthread_barrier_wait(&turns);
	}
	return NULL;
}

static void run(void)
{
	change_often(NULL);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
}

static void begin(struct window *window, const char *name)
{
	window->range = torsh_range_start(name);
	torsh_memory_begin_with_lines(&window->memory);
	n_begun++;
	window->most = 0;
	note(window);
}

static void end(struct window *window)
{
	torsh_memory_end(window->memory.window, &window->memory);
	torsh_range_end(window->range);
	n_ended++;
}

int main(int argc, char **argv)
{
	static char path[4000];
	pthread_t thread;

	pthread_barrier_init(&turns, NULL, 2);
	pthread_create(&thread, NULL, take_turns, NULL);
	for (int i = 0; i < N_WINDOWS; i++) {
		char name[] = {'w', (char)('0' + i), '\0'};

		run();
		begin(&windows[i], name);
		if (i)
			end(&windows[i - 1]);
	}
	run();
	end(&windows[N_WINDOWS - 1]);
	pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "%s/now.torsh", argc > 1 ? argv[1] : ".");
	if (torsh_snapshot(path))
		return 1;
	for (int i = 0; i < N_WINDOWS; i++) {
		for (int k = 0; k < N_KEEPERS; k++)
			printf("w%d %s %llu %llu %llu\n", i, names[k],
			       (unsigned long long)windows[i].at_peak[k].bytes,
			       (unsigned long long)windows[i].at_peak[k].n,
			       (unsigned long long)windows[i].memory.peak_bytes);
	}
	return 0;
}
