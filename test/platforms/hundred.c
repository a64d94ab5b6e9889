/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A hundred leaks of 104,950 bytes together, and status 7. */
#include <stdlib.h>

__attribute__((noinline)) static void *leak_here(int n)
{
	void *volatile block = malloc((size_t)n);

	return block;
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		leak_here(1000 + i);
	return 7;
}
