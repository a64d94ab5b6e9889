/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * 100 steps: those before step 50 lose 100 bytes each in lose_first, in the region "first"; the
 * others 200 bytes in lose_second, in the region "second". Both keep a block from step to step.
 */
#include <stdlib.h>

#include "shim/ranges/torsh.h"

static void *volatile lost;

__attribute__((noinline)) static void lose_first(size_t bytes)
{
	lost = malloc(bytes);
}

__attribute__((noinline)) static void lose_second(size_t bytes)
{
	lost = malloc(bytes);
}

int main(void)
{
	void *kept = NULL;

	for (uint64_t i = 0; i < 100; i++) {
		torsh_step(i);
		torsh_range_push(i < 50 ? "first" : "second");
		if (i < 50)
			lose_first(100);
		else
			lose_second(200);
		torsh_range_pop();
		free(kept);
		kept = malloc(5000);
	}
	free(kept);
	return 0;
}
