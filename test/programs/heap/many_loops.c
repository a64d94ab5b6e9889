/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * many_loops STEPS [requests | unmarked]: for test/e2e/heap/growth_of_loops.py. What keep_... keeps
 * is bounded, what leak_... keeps is not. In place of marks there are requests, or nothing; then a
 * step takes 2 ms.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/ranges/torsh.h"

#define STEP_NS 2000000u

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 33) % n;
}

static void *checked(void *block)
{
	if (!block)
		abort();
	return block;
}

/* Replace a block. */
static __attribute__((always_inline)) inline void put(void **place, size_t size)
{
	free(*place);
	*place = checked(malloc(size));
}

/* LOOP(name) { what it does in step i } */
#define LOOP(name) static __attribute__((noinline)) void name(__attribute__((unused)) uint32_t i)

LOOP(keep_the_latest)
{
	static void *latest;

	put(&latest, 1000 + i);
}

LOOP(keep_a_ring)
{
	static void *ring[32];

	put(&ring[i % 32], 300);
}

LOOP(keep_a_long_ring)
{
	static void *ring[140];

	put(&ring[i % 140], 300);
}

LOOP(keep_a_ring_of_many_sizes)
{
	static void *ring[40];

	put(&ring[i % 40], 100 + random_below(3000));
}

LOOP(keep_a_table)
{
	static void *table[64];

	put(&table[random_below(64)], 300);
	put(&table[random_below(64)], 300);
}

LOOP(keep_what_comes_first)
{
	static void *table[70];

	if (i < 70)
		put(&table[i], 300);
}

LOOP(keep_a_stack)
{
	static void *stack[64];
	static uint32_t n;

	for (uint32_t k = 0; k < 3; k++) {
		if (n < 10 || (n < 20 && random_below(2)))
			stack[n++] = checked(malloc(300));
		else
			free(stack[--n]);
	}
}

LOOP(keep_a_batch)
{
	static void *batch[30];

	if (i % 30 == 0) {
		for (uint32_t k = 0; k < 30; k++) {
			free(batch[k]);
			batch[k] = NULL;
		}
	}
	batch[i % 30] = checked(malloc(300));
}

LOOP(keep_an_array_that_has_grown)
{
	static void *array;
	static size_t room;

	if (room < 20000)
		array = checked(realloc(array, room += 400));
}

LOOP(keep_nothing)
{
	for (uint32_t k = 0; k < 5; k++)
		free(checked(calloc(1, 1000 + i)));
}

LOOP(keep_every_tenth_of_a_few)
{
	static void *few[3];

	if (i % 10 == 0)
		put(&few[i / 10 % 3], 4000);
}

static void *lost; /* the compiler must not leave out what is lost */

LOOP(leak_each_step)
{
	lost = checked(malloc(300));
}

LOOP(leak_every_eighth_step)
{
	if (i % 8 == 5)
		lost = checked(calloc(1, 2000));
}

LOOP(leak_at_random)
{
	if (random_below(3) == 0)
		lost = checked(malloc(600));
}

LOOP(leak_many_sizes)
{
	lost = checked(malloc(50 + random_below(1000)));
}

LOOP(leak_in_an_array)
{
	static char *array;

	array = checked(realloc(array, 300 * (i + 1)));
}

LOOP(leak_in_a_list)
{
	struct node {
		struct node *next;
		char text[200];
	} *node = checked(malloc(sizeof(*node)));
	static struct node *first;

	snprintf(node->text, sizeof(node->text), "%u", i);
	node->next = first;
	first = node;
}

LOOP(leak_texts)
{
	char text[400];

	memset(text, 'a', sizeof(text));
	text[300 + i % 64] = '\0';
	lost = checked(strdup(text));
}

LOOP(leak_one_of_four)
{
	for (uint32_t k = 0; k < 4; k++) {
		void *block = checked(malloc(300));

		if (k == i % 4)
			lost = block;
		else
			free(block);
	}
}

LOOP(leak_aligned)
{
	void *block;

	if (posix_memalign(&block, 64, 512))
		abort();
	lost = block;
}

LOOP(leak_after_a_warm_up)
{
	if (i > 55)
		lost = checked(malloc(300));
}

LOOP(leak_below_a_ring)
{
	static void *ring[20];

	if (i % 4 == 0)
		ring[i % 20] = NULL;
	put(&ring[i % 20], 1000);
}

LOOP(leak_more_and_more)
{
	lost = checked(malloc(8 * (i + 1)));
}

static void (*const loops[])(uint32_t i) = {
	keep_the_latest,
	keep_a_ring,
	keep_a_long_ring,
	keep_a_ring_of_many_sizes,
	keep_a_table,
	keep_what_comes_first,
	keep_a_stack,
	keep_a_batch,
	keep_an_array_that_has_grown,
	keep_nothing,
	keep_every_tenth_of_a_few,
	leak_each_step,
	leak_every_eighth_step,
	leak_at_random,
	leak_many_sizes,
	leak_in_an_array,
	leak_in_a_list,
	leak_texts,
	leak_one_of_four,
	leak_aligned,
	leak_after_a_warm_up,
	leak_below_a_ring,
	leak_more_and_more,
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run_step(uint32_t i)
{
	for (size_t k = 0; k < sizeof(loops) / sizeof(*loops); k++)
		loops[k](i);
}

static void wait_for(uint64_t end_ns)
{
	while (now_ns() < end_ns)
		;
}

int main(int argc, char **argv)
{
	uint32_t n_steps = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	int is_marked = argc<3, has_requests = argc> 2 && !strcmp(argv[2], "requests");

	for (uint32_t i = 0; i < n_steps; i++) {
		uint64_t start_ns = now_ns();

		if (is_marked)
			torsh_step(i);
		if (has_requests)
			torsh_request_begin("serve");
		run_step(i);
		if (!is_marked)
			wait_for(start_ns + STEP_NS);
		if (has_requests)
			torsh_request_end();
	}
	return 0;
}
