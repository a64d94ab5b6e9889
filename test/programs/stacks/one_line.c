/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two lines that allocate from hundreds of addresses each, as macros and inlined functions do. */
#include <stdlib.h>

static void *volatile latest; /* nothing leads to those before */

static inline __attribute__((always_inline)) void keep(size_t bytes)
{
	latest = malloc(bytes);
	if (!latest)
		abort();
}

#define TEN(x) x x x x x x x x x x
#define HUNDRED(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x) TEN(x)

static __attribute__((noinline)) void three_hundred(void)
{
	HUNDRED(keep(32);) HUNDRED(keep(32);) HUNDRED(keep(32);)
}

static __attribute__((noinline)) void one_hundred(void)
{
	HUNDRED(keep(48);)
}

int main(void)
{
	for (int i = 0; i < 2; i++)
		three_hundred();
	one_hundred();
	return 0;
}
