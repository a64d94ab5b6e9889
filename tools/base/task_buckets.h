/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Buckets of durations in nanoseconds: each power of two in 64 parts, so that a bucket's middle is
 * at most 0.8 % from what is in it. Durations below 64 ns are exact.
 */
#ifndef TORSH_BASE_TASK_BUCKETS_H
#define TORSH_BASE_TASK_BUCKETS_H

#include <stdint.h>

#define TASK_BUCKET_BITS 6u
#define TASK_BUCKETS ((64u - TASK_BUCKET_BITS + 1u) << TASK_BUCKET_BITS)

/* The bucket of a duration. */
static inline uint32_t torsh_task_bucket(uint64_t ns)
{
	uint32_t octave;

	if (ns < 1u << TASK_BUCKET_BITS)
		return (uint32_t)ns;
	octave = 63u - (uint32_t)__builtin_clzll(ns) - TASK_BUCKET_BITS;
	return (octave + 1) << TASK_BUCKET_BITS |
	       (uint32_t)(ns >> octave & ((1u << TASK_BUCKET_BITS) - 1));
}

/* The duration in the middle of a bucket. */
static inline uint64_t torsh_task_bucket_ns(uint32_t bucket)
{
	uint32_t octave = bucket >> TASK_BUCKET_BITS,
		 part = bucket & ((1u << TASK_BUCKET_BITS) - 1);

	if (!octave)
		return part;
	octave--;
	return ((uint64_t)(part | 1u << TASK_BUCKET_BITS) << octave) +
	       (octave ? UINT64_C(1) << (octave - 1) : 0);
}

#endif
