/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Random numbers for tests: the same from each seed, so that a failure comes back. */
#ifndef TORSH_TEST_RANDOM_H
#define TORSH_TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *state;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
	return random_next(state) % n;
}

/* Of any magnitude: each number of bits is as likely as another. */
static inline uint64_t random_wide(uint64_t *state)
{
	return random_next(state) >> random_below(state, 64);
}

#endif
