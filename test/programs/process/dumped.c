/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Dies of a bad address, several calls deep and beside another thread, with known memory: for its
 * core dump.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N_WORDS 100000
#define N_BLOCKS 20000

static uint64_t *known;
static pthread_barrier_t both;

static void *wait_in_thread(void *argument)
{
	pthread_barrier_wait(&both);
	for (;;)
		pause();
	return argument;
}

static void die_here(volatile int *nowhere)
{
	*nowhere = 1;
}

static void go_on(void)
{
	die_here(NULL);
}

int main(void)
{
	pthread_t thread;

	known = malloc(N_WORDS * sizeof(*known));
	for (uint64_t i = 0; i < N_WORDS; i++)
		known[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < N_BLOCKS; i++)
		free(malloc(100 + (size_t)i));
	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&thread, NULL, wait_in_thread, NULL))
		return 1;
	pthread_barrier_wait(&both);
	printf("%p\n", (void *)known);
	fflush(stdout);
	go_on();
	return 0;
}
