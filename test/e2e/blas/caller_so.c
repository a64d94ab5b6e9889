/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A library that calls dgemm_, in whatever library that is. */
#include <stddef.h>

extern void dgemm_(const char *, const char *, const int *, const int *, const int *,
		   const double *, const double *, const int *, const double *, const int *,
		   const double *, double *, const int *, size_t, size_t);

void caller_calls(int size)
{
	static double a[4] = {1}, b[4] = {2}, c[4];
	const double one = 1;

	dgemm_("N", "N", &size, &size, &size, &one, a, &size, b, &size, &one, c, &size, 1, 1);
}
