/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	windows STEPS [BLOCKS]
 *
 * Loses memory in known windows: before and after the marks "ready" and "done"; in each of the
 * steps 10, 11, ... inside of the region "train" of the domain "own", in the region "eval", and
 * between them. Prints a line for each lost block, "STEP REGION BYTES", with - for none. What is
 * lost in a step has a stack of its own, but for lose_anywhere: it is called from one line, for
 * even steps in "train" and for odd ones after it. Nothing lies between marks, steps and regions
 * and what is lost. BLOCKS of one stack are lost in the end, the second third of them in the region
 * "bulk": prints the number of those.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#define FIRST_NUMBER 10
#define ANYWHERE_BYTES 1000

static void *volatile lost;
static char book[1 << 16]; /* printed at the end: stdio allocates */
static size_t n_book;

static void lose(long step, const char *region, size_t bytes)
{
	lost = malloc(bytes);
	free(malloc(bytes));
	n_book += (size_t)snprintf(book + n_book, sizeof(book) - n_book, "%ld %s %zu\n", step,
				   region, bytes);
}

/* A stack of that depth: one for each step. */
static void lose_deeply(long depth, long step, const char *region, size_t bytes)
{
	if (depth)
		lose_deeply(depth - 1, step, region, bytes);
	else
		lose(step, region, bytes);
}

static void lose_anywhere(long step, const char *region)
{
	lose(step, region, ANYWHERE_BYTES);
}

static void push_own(const char *name)
{
	struct torsh_attributes attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	attributes.domain = "own";
	torsh_range_push_with(name, &attributes);
}

static void run_step(long i)
{
	volatile bool is_odd = i % 2; /* read each time: lose_anywhere is called from one place */

	torsh_step(FIRST_NUMBER + (uint64_t)i);
	push_own("train");
	lose_deeply(i, FIRST_NUMBER + i, "train", (size_t)(i + 1) * 16);
	if (is_odd)
		torsh_range_pop_from("own");
	lose_anywhere(FIRST_NUMBER + i, is_odd ? "-" : "train");
	if (!is_odd)
		torsh_range_pop_from("own");
	lose_deeply(i, FIRST_NUMBER + i, "-", (size_t)(i + 1) * 64);
	torsh_range_push("eval");
	lose_deeply(i, FIRST_NUMBER + i, "eval", (size_t)(i + 1) * 256);
	torsh_range_pop();
}

static void lose_many(long n)
{
	long third = n / 3;

	for (long i = 0; i < n; i++) {
		if (i == third)
			torsh_range_push("bulk");
		lost = malloc(ANYWHERE_BYTES);
		if (i == 2 * third - 1)
			torsh_range_pop();
	}
}

int main(int argc, char **argv)
{
	long n_steps = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	lose(-1, "-", 11);
	torsh_mark("ready");
	lose(-1, "-", 12);
	for (long i = 0; i < n_steps; i++)
		run_step(i);
	torsh_mark("done");
	lose(-1, "-", 13);
	torsh_mark("done");
	lose(-1, "-", 14);
	if (argc > 2)
		lose_many(strtol(argv[2], NULL, 10));
	fputs(book, stdout);
	if (argc > 2)
		printf("%ld\n", strtol(argv[2], NULL, 10) / 3);
	return 0;
}
