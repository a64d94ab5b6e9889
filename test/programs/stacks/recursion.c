/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * recursion DEPTH: a function that calls itself so often, and keeps BLOCKS blocks each time, each
 * from another call: tens of thousands of stacks, whose frames are tens of millions.
 */
#include <stdlib.h>

#define BLOCKS 50
#define BYTES 32

static void *kept;

#define KEEP1 keep();
#define KEEP10 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1 KEEP1
_Static_assert(BLOCKS == 50, "five times ten");

static inline __attribute__((always_inline)) void keep(void)
{
	void **block = malloc(BYTES);

	if (!block)
		abort();
	*block = kept;
	kept = block;
}

static __attribute__((noinline)) int descend(int depth)
{
	int below;

	if (!depth)
		return 0;
	KEEP10 KEEP10 KEEP10 KEEP10 KEEP10 below = descend(depth - 1);
	/* No call of it is the last thing that a call does. */
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 0;

	if (descend(depth) != depth)
		return 1;
	kept = NULL;
	return 0;
}
