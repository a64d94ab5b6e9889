/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads the figures of its heap by torsh.h around allocations of sizes that it prints, on threads,
 * in a fork, in a signal handler, in windows and in a pause. With the agent each line is exact;
 * test/e2e/ranges/memory_calls.py has them.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define MIB (UINT64_C(1) << 20)
#define N_THREADS 8
#define N_BLOCKS 50
#define BLOCK_BYTES 1000
#define N_SIGNALS 300

static pthread_barrier_t barrier;
static volatile sig_atomic_t n_handled, n_refused, n_wrong;
static char printed[4096];

/* Collected, because printing may allocate. */
#define SAY(...) snprintf(printed + strlen(printed), sizeof(printed) - strlen(printed), __VA_ARGS__)

static void say_change(const char *what, uint64_t from, uint64_t to)
{
	SAY("%s %" PRId64 "\n", what, (int64_t)(to - from));
}

static void use_blocks(void)
{
	uint64_t before = torsh_current_bytes(), between;
	char *a = malloc(1000), *b = calloc(3, 7);

	between = torsh_current_bytes();
	say_change("allocated", before, between);
	a = realloc(a, 5000);
	say_change("resized", between, torsh_current_bytes());
	free(a);
	free(b);
	say_change("freed", before, torsh_current_bytes());
	SAY("reset %d\n", torsh_reset_peak());
	free(malloc(5 * MIB));
	free(malloc(2 * MIB));
	say_change("peak", torsh_current_bytes(), torsh_peak_bytes());
	torsh_reset_peak();
	say_change("peak after reset", torsh_current_bytes(), torsh_peak_bytes());
}

static void say_window(const char *what, const struct torsh_memory *memory, int result)
{
	SAY("%s %d: peak %" PRId64 ", stayed %" PRId64 " in %" PRId64 " blocks\n", what, result,
	    (int64_t)(memory->peak_bytes - memory->begin_bytes),
	    (int64_t)(memory->current_bytes - memory->begin_bytes),
	    (int64_t)(memory->current_blocks - memory->begin_blocks));
}

static void use_windows(void)
{
	struct torsh_memory outer, inner, again;
	char *before = malloc(MIB), *kept;
	int result;

	result = torsh_memory_begin(&outer);
	SAY("begin %d %u\n", result, outer.window);
	free(before);
	kept = malloc(4 * MIB);
	torsh_memory_begin(&inner);
	free(malloc(MIB));
	result = torsh_memory_end(inner.window, &inner);
	say_window("inner", &inner, result);
	SAY("closed %d\n", torsh_memory_end(inner.window, &again));
	result = torsh_memory_read(outer.window, &again);
	say_window("outer, open", &again, result);
	free(kept);
	result = torsh_memory_end(outer.window, &outer);
	say_window("outer", &outer, result);
	SAY("unknown %d\n", torsh_memory_read(77, &again));
}

static void *hold_blocks(void *unused)
{
	char *blocks[N_BLOCKS];

	(void)unused;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_BLOCKS; i++)
		blocks[i] = malloc(BLOCK_BYTES);
	/* All at once. */
	for (int i = 0; i < 5; i++) {
		struct torsh_memory memory;

		if (torsh_memory_read(0, &memory))
			n_wrong++;
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_BLOCKS; i++)
		free(blocks[i]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void use_threads(void)
{
	pthread_t threads[N_THREADS];
	uint64_t before, between;

	pthread_barrier_init(&barrier, NULL, N_THREADS + 1);
	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, hold_blocks, NULL);
	pthread_barrier_wait(&barrier);
	before = torsh_current_bytes();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	between = torsh_current_bytes();
	say_change("threads hold", before, between);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	say_change("threads freed", between, torsh_current_bytes());
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	SAY("threads refused %d\n", (int)n_wrong);
}

static void use_fork(void)
{
	uint64_t before = torsh_current_bytes();
	int status = -1;
	pid_t child = fork();

	if (!child) {
		uint64_t own = torsh_current_bytes();
		char *block = malloc(777);

		own = torsh_current_bytes() - own;
		free(block);
		_exit(own == (torsh_is_there() ? 777 : 0) ? 7 : 8);
	}
	waitpid(child, &status, 0);
	SAY("fork %d\n", WEXITSTATUS(status));
	say_change("parent", before, torsh_current_bytes());
}

/* Its thread is the parent's, which waits: nothing is answered. */
static void use_vfork(void)
{
	volatile int result = 0;
	pid_t child = vfork();

	if (!child) {
		struct torsh_memory memory;

		result = torsh_memory_read(0, &memory);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	SAY("vfork %d\n", result);
}

static void handle(int unused)
{
	struct torsh_memory memory;
	int result = torsh_memory_read(0, &memory);

	(void)unused;
	n_handled++;
	if (result == -EDEADLK)
		n_refused++;
	else if (result && torsh_is_there())
		n_wrong++;
}

static void *send_signals(void *main_thread)
{
	for (int i = 0; i < N_SIGNALS; i++) {
		while (n_handled < i)
			;
		pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
	}
	return NULL;
}

static void use_signals(void)
{
	struct sigaction action = {.sa_handler = handle};
	pthread_t self = pthread_self(), sender;
	char *block = malloc(100);

	sigaction(SIGUSR1, &action, NULL);
	n_wrong = 0;
	pthread_create(&sender, NULL, send_signals, &self);
	while (n_handled < N_SIGNALS) {
		free(malloc(64));
		block = realloc(block, 100);
		if (n_handled % 3 == 0)
			torsh_current_bytes();
	}
	pthread_join(sender, NULL);
	SAY("handlers wrong %d\n", (int)n_wrong);
	free(block);
}

static void use_pause(void)
{
	uint64_t before = torsh_current_bytes();
	char *block, *recorded = malloc(300);
	int first = torsh_pause(), second = torsh_pause();

	SAY("pause %d %d\n", first, second);
	block = malloc(5000);
	free(recorded);
	first = torsh_resume();
	second = torsh_resume();
	SAY("resume %d %d\n", first, second);
	say_change("after the pause", before, torsh_current_bytes());
	free(block);
	say_change("after the free", before, torsh_current_bytes());
}

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

int main(void)
{
	int n_files = count_entries("/proc/self/fd"), n_threads = count_entries("/proc/self/task");

	errno = 42;
	torsh_current_bytes();
	SAY("%s %d\n", torsh_is_there() ? "there" : "alone", errno);
	use_blocks();
	use_windows();
	use_threads();
	use_fork();
	use_vfork();
	use_signals();
	use_pause();
	SAY("descriptors %d, threads %d\n", count_entries("/proc/self/fd") - n_files,
	    count_entries("/proc/self/task") - n_threads);
	fputs(printed, stdout);
	return 0;
}
