/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Everything at once: threads that load and unload libraries, fork, execute, take signals, throw, start threads and
 * cancel them, for some time. See test/fault/storm.py.
 *
 *	storm N_THREADS SECONDS LIBRARY...	prints "function blocks" for each function that kept blocks
 *	storm leaf				keeps LEAF_BLOCKS and ends
 *
 * What is kept is counted right after it was made, by where that happened; a child's is counted when it ended as it should.
 * Any other end than status 0 is a fault: an operation that failed aborts.
 */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define THREADS_MAX 256
#define KEPT_BYTES 48
#define KEPT_ONE_OF 16 /* so that a long storm doesn't fill the machine */
#define CHILD_BLOCKS 3
#define LEAF_BLOCKS 5
#define TIMER_US 5000

#define PLACES                  \
	PLACE(keep_in_library)  \
	PLACE(keep_in_handler)  \
	PLACE(keep_when_caught) \
	PLACE(keep_in_thread)   \
	PLACE(keep_in_child)    \
	PLACE(keep_in_leaf)

enum place {
#define PLACE(name) PLACE_##name,
	PLACES
#undef PLACE
		N_PLACES
};

static std::atomic<uint64_t> kept[N_PLACES];
static std::atomic<bool> is_over;
static std::atomic<uint64_t> n_ticks;
static void *volatile kept_last;
static char **libraries;
static int n_libraries;
static const char *own_path;

#define PLACE(name)                             \
	static NOINLINE void name()             \
	{                                       \
		kept_last = malloc(KEPT_BYTES); \
		if (!kept_last)                 \
			abort();                \
		kept[PLACE_##name]++;           \
	}
PLACES
#undef PLACE

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* ---- the operations ---- */

static void nothing()
{
}

static void load_library(uint32_t *random)
{
	void *library = dlopen(libraries[next_random(random) % n_libraries], RTLD_NOW);
	void (*twin)(void (*)());

	if (!library)
		abort();
	*(void **)&twin = dlsym(library, "twin");
	twin(next_random(random) % KEPT_ONE_OF ? nothing : keep_in_library);
	dlclose(library);
}

static thread_local bool keeps_in_handler;

static void handle_user(int)
{
	if (keeps_in_handler)
		keep_in_handler();
	free(malloc(100));
}

/* Sent to itself where it isn't in an allocation: its handler may allocate. */
static void raise_signal(uint32_t *random)
{
	keeps_in_handler = next_random(random) % KEPT_ONE_OF == 0;
	pthread_kill(pthread_self(), SIGUSR1);
}

struct guard {
	void *block = malloc(64);
	~guard()
	{
		free(block);
	}
};

static NOINLINE void throw_from(int depth)
{
	guard here;

	if (depth == 0)
		throw depth;
	throw_from(depth - 1);
	kept_last = here.block;
}

static void throw_and_catch(uint32_t *random)
{
	try {
		throw_from((int)(next_random(random) % 12));
	} catch (int) {
		if (next_random(random) % KEPT_ONE_OF == 0)
			keep_when_caught();
	}
}

static void *run_until_cancelled(void *keeps)
{
	guard here;

	if (keeps)
		keep_in_thread();
	for (;;) {
		free(malloc(300));
		pthread_testcancel();
	}
	return nullptr;
}

static void cancel_thread(uint32_t *random)
{
	bool keeps = next_random(random) % KEPT_ONE_OF == 0;
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run_until_cancelled, keeps ? &is_over : nullptr))
		abort();
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
}

/* A cancelled thread may not have come as far as to keep its block: this one has. */
static void *run_to_the_end(void *)
{
	keep_in_thread();
	return nullptr;
}

static void join_thread(uint32_t *)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run_to_the_end, nullptr))
		abort();
	pthread_join(thread, nullptr);
}

static void await(pid_t child, enum place place, uint64_t n_blocks)
{
	int status;

	if (child < 0)
		abort();
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			abort();
	if (status) {
		fprintf(stderr, "a child ended with status %#x\n", status);
		abort();
	}
	kept[place] += n_blocks;
}

static void fork_child(uint32_t *)
{
	pid_t child = fork();

	if (child == 0) {
		for (int i = 0; i < CHILD_BLOCKS; i++)
			keep_in_child();
		_exit(0);
	}
	await(child, PLACE_keep_in_child, CHILD_BLOCKS);
}

static void fork_and_execute(uint32_t *)
{
	pid_t child = fork();

	if (child == 0) {
		execl(own_path, own_path, "leaf", nullptr);
		_exit(9);
	}
	await(child, PLACE_keep_in_leaf, LEAF_BLOCKS);
}

static int run_leaf()
{
	for (int i = 0; i < LEAF_BLOCKS; i++)
		keep_in_leaf();
	return 0;
}

/* ---- the storm ---- */

static void handle_alarm(int)
{
	n_ticks++;
}

static void *run(void *number)
{
	uint32_t random = (uint32_t)(uintptr_t)number * 2654435761u + 7;

	while (!is_over) {
		uint32_t what = next_random(&random) % 1000;

		if (what < 400)
			load_library(&random);
		else if (what < 650)
			throw_and_catch(&random);
		else if (what < 900)
			raise_signal(&random);
		else if (what < 970)
			cancel_thread(&random);
		else if (what < 994)
			join_thread(&random);
		else if (what < 999)
			fork_child(&random);
		else
			fork_and_execute(&random);
	}
	return nullptr;
}

int main(int argc, char **argv)
{
	struct itimerval timer = {};
	pthread_t threads[THREADS_MAX];
	long n_threads;

	if (argc == 2 && !strcmp(argv[1], "leaf"))
		return run_leaf();
	if (argc < 4)
		return 2;
	n_threads = atol(argv[1]);
	own_path = argv[0];
	libraries = argv + 3;
	n_libraries = argc - 3;
	signal(SIGUSR1, handle_user);
	signal(SIGALRM, handle_alarm);
	timer.it_interval.tv_usec = timer.it_value.tv_usec = TIMER_US;
	setitimer(ITIMER_REAL, &timer, nullptr);
	for (long i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], nullptr, run, (void *)i))
			return 3;
	for (time_t end = time(nullptr) + atol(argv[2]); time(nullptr) < end;)
		usleep(10000);
	is_over = true;
	for (long i = 0; i < n_threads; i++)
		pthread_join(threads[i], nullptr);
#define PLACE(name) printf(#name " %llu\n", (unsigned long long)kept[PLACE_##name]);
	PLACES
#undef PLACE
	return 0;
}
