/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * cpu_burn SECONDS: burns processor time in named functions, by its own measure: in burn_long two
 * shares and in burn_short one on the first thread, in burn_thread one on a second thread, in
 * burn_child one in a forked child, while a third thread sleeps. Prints each function's time in ns.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200000

static volatile uint64_t sink;
static double share_s;
static sem_t never;

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each has a loop of its own: the time is in the function itself. */
#define BURNER(name)                                                    \
	static __attribute__((noinline)) uint64_t name(double seconds)  \
	{                                                               \
		uint64_t begin_ns = thread_ns(), now_ns = begin_ns;     \
                                                                        \
		while (now_ns - begin_ns < (uint64_t)(seconds * 1e9)) { \
			for (int i = 0; i < ROUNDS; i++)                \
				sink += (uint64_t)i;                    \
			now_ns = thread_ns();                           \
		}                                                       \
		return now_ns - begin_ns;                               \
	}

BURNER(burn_long)
BURNER(burn_short)
BURNER(burn_thread)
BURNER(burn_child)

static void *run_burner(void *unused)
{
	(void)unused;
	return (void *)(uintptr_t)burn_thread(share_s);
}

static void *run_sleeper(void *unused)
{
	(void)unused;
	sem_wait(&never);
	return NULL;
}

static void burn_in_child(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		printf("burn_child %" PRIu64 "\n", burn_child(share_s));
		exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	pthread_t burner, sleeper;
	void *result;

	share_s = argc > 1 ? atof(argv[1]) : 0.2;
	sem_init(&never, 0, 0);
	pthread_create(&sleeper, NULL, run_sleeper, NULL);
	pthread_create(&burner, NULL, run_burner, NULL);
	printf("burn_long %" PRIu64 "\n", burn_long(2 * share_s));
	printf("burn_short %" PRIu64 "\n", burn_short(share_s));
	pthread_join(burner, &result);
	printf("burn_thread %" PRIu64 "\n", (uint64_t)(uintptr_t)result);
	sem_post(&never);
	pthread_join(sleeper, NULL);
	burn_in_child();
	return 0;
}
