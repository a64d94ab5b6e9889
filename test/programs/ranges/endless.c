/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	endless EVENTS
 *
 * A training that goes on and on: for each letter on stdin about so many events, in steps of
 * ranges, marks, values and blocks of memory, and a dot.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define PARTS 100 /* of a step */
#define EVENTS_OF_PART 8
#define EVENTS_OF_STEP (PARTS * EVENTS_OF_PART + 1)

static void *volatile kept;

static void work(const char *name, size_t n_bytes)
{
	torsh_range_push(name);
	kept = malloc(n_bytes);
	torsh_mark("reached");
	torsh_range_push("inner");
	torsh_range_pop();
	free(kept);
	torsh_scalar("loss", (double)n_bytes);
	torsh_range_pop();
}

static void run_steps(uint64_t n_events)
{
	static const char *const names[] = {"forward", "backward", "update", "log"};
	static uint64_t n_steps;

	for (uint64_t i = 0; i < n_events; i += EVENTS_OF_STEP) {
		torsh_step(n_steps++);
		for (size_t part = 0; part < PARTS; part++)
			work(names[part % 4], 16 << part % 8);
	}
}

int main(int argc, char **argv)
{
	uint64_t n_events = argc > 1 ? strtoull(argv[1], NULL, 10) : EVENTS_OF_STEP;
	char letter;

	while (read(STDIN_FILENO, &letter, 1) == 1) {
		run_steps(n_events);
		(void)!write(STDOUT_FILENO, ".", 1);
	}
	return 0;
}
