/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * crowd names N: ranges of N different names. crowd stacks BITS: a block of 16 bytes that is never
 * freed from each of 2^BITS different stacks. crowd long BYTES: two ranges with names of so many
 * bytes that differ in the last one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

static void *_Atomic last;

static void name_ranges(unsigned long n)
{
	char name[32];

	for (unsigned long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "range number %lu", i);
		torsh_range_push(name);
		torsh_range_pop();
	}
}

static int name_long(size_t n_bytes)
{
	char *name = malloc(n_bytes + 1);

	if (!name)
		return 1;
	memset(name, 'x', n_bytes);
	name[n_bytes] = '\0';
	for (char last = 'a'; last <= 'b'; last++) {
		name[n_bytes - 1] = last;
		torsh_range_push(name);
		torsh_range_pop();
	}
	free(name);
	return 0;
}

/* Each call is a place of its own, and comes back here: none of them is a tail call. */
__attribute__((noinline)) static int spread(unsigned bits)
{
	if (!bits) {
		last = malloc(16);
		return last != NULL;
	}
	return spread(bits - 1) + spread(bits - 1);
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc == 3 && !strcmp(argv[1], "names"))
		name_ranges(n);
	else if (argc == 3 && !strcmp(argv[1], "stacks"))
		printf("%d\n", spread((unsigned)n));
	else if (argc == 3 && !strcmp(argv[1], "long") && n)
		return name_long(n);
	else
		return 2;
	return 0;
}
