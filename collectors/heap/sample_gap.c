/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/heap/sample_gap.h"

/* xorshift64* (Marsaglia 2003, Vigna 2014). */
static uint64_t next_random(uint64_t *random)
{
	uint64_t x = *random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*random = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

/*
 * The natural logarithm of x > 0, to 1e-13: the agent links no libm. With x = m * 2^e and
 * s = (m - 1) / (m + 1), ln m is the series 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
 */
static double logarithm(double x)
{
	union {
		double value;
		uint64_t bits;
	} m = {.value = x};
	int exponent = (int)(m.bits >> 52) - 1023;
	double s, square, sum = 0;

	m.bits = (m.bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
	if (m.value > 1.4142135623730951) {
		m.value /= 2;
		exponent++;
	}
	s = (m.value - 1) / (m.value + 1);
	square = s * s;
	for (int i = 17; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return 2 * s * sum + exponent * 0.69314718055994531;
}

int64_t torsh_sampler_gap(uint64_t *random, uint64_t rate)
{
	/* In (0, 1], so that its logarithm exists. */
	double uniform = (double)((next_random(random) >> 11) + 1) / (double)(UINT64_C(1) << 53);
	double gap = -logarithm(uniform) * (double)rate;
	int64_t whole = (int64_t)gap;

	return whole + ((double)whole < gap || !whole);
}
