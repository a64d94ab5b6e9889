/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	paced
 *
 * Runs a step for each letter on stdin, and answers each with a dot: s takes a millisecond, S a
 * hundred, L two seconds. Steps have the numbers 0, 1, ...; each has 20 ranges "work".
 */
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define N_RANGES 20

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_step(uint64_t number, uint64_t ns)
{
	uint64_t end_ns = now_ns() + ns;

	torsh_step(number);
	for (int i = 0; i < N_RANGES; i++) {
		torsh_range_push("work");
		torsh_range_pop();
	}
	while (now_ns() < end_ns)
		;
}

int main(void)
{
	uint64_t number = 0;
	char letter;

	while (read(STDIN_FILENO, &letter, 1) == 1) {
		uint64_t ms = letter == 'L' ? 2000 : letter == 'S' ? 100 : 1;

		run_step(number++, ms * 1000000);
		if (write(STDOUT_FILENO, ".", 1) != 1)
			return 1;
	}
	return 0;
}
