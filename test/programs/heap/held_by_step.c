/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	held_by_step STEPS PEAK
 *
 * Holds memory from known steps: weights from before the first step; activations of each step until
 * the next one; one more piece of history with each step; a mistake in step 3; and in step PEAK so
 * much that this is the peak. Steps have the numbers 10, 11, ...
 */
#include <stdlib.h>

#include "shim/ranges/torsh.h"

#define FIRST_NUMBER 10

static void *volatile kept;

static void make_weights(void)
{
	kept = malloc(50000);
}

static void *make_activations(void)
{
	return malloc(20000);
}

static void write_history(void)
{
	kept = malloc(100);
}

static void make_mistake(void)
{
	kept = malloc(77);
}

static void *make_peak(void)
{
	return malloc(1000000);
}

int main(int argc, char **argv)
{
	long n_steps = argc > 2 ? strtol(argv[1], NULL, 10) : 0,
	     peak = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	void *activations = NULL;

	make_weights();
	for (long i = 0; i < n_steps; i++) {
		torsh_step(FIRST_NUMBER + (uint64_t)i);
		free(activations);
		activations = make_activations();
		write_history();
		if (i == 3)
			make_mistake();
		if (i == peak)
			free(make_peak());
	}
	free(activations);
	return 0;
}
