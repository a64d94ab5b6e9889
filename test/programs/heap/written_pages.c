/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A heap whose peak is not when most is resident. Obeys letters from its standard input, and
 * answers each with a dot: t: 64 MiB that are written, f: free these, u: 256 MiB that are not
 * written, e: a small block that is freed at once.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static void *volatile written, *volatile unwritten, *volatile small;

__attribute__((noinline)) static void write_big(void)
{
	written = malloc(64 * MIB);
	memset(written, 1, 64 * MIB);
}

__attribute__((noinline)) static void reserve_big(void)
{
	unwritten = malloc(256 * MIB);
}

int main(void)
{
	char letter;

	while (read(0, &letter, 1) == 1) {
		if (letter == 't')
			write_big();
		else if (letter == 'f')
			free(written);
		else if (letter == 'u')
			reserve_big();
		small = malloc(100);
		free(small);
		if (write(1, ".", 1) != 1)
			return 1;
	}
	free(unwritten);
	return 0;
}
