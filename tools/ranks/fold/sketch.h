/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Buckets of durations that are the same everywhere, so that sketches add up to the same sum in
 * any order: those of tools/timeline/histogram.h, 16 per power of two. The middle of a bucket is
 * within 1/32 of its values.
 */
#ifndef TORSH_RANKS_FOLD_SKETCH_H
#define TORSH_RANKS_FOLD_SKETCH_H

#include <stdint.h>

#define SKETCH_BITS 4
#define SKETCH_BUCKETS ((64 - SKETCH_BITS + 1) << SKETCH_BITS)

/* Returns the bucket of a value, below SKETCH_BUCKETS; it rises with the value. */
static inline uint32_t torsh_sketch_bucket(uint64_t value)
{
	unsigned shift;

	if (value >> SKETCH_BITS == 0)
		return (uint32_t)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - SKETCH_BITS;
	return (uint32_t)((shift + 1) << SKETCH_BITS |
			  ((value >> shift) & ((1u << SKETCH_BITS) - 1)));
}

/* Returns the middle of a bucket. */
static inline uint64_t torsh_sketch_value(uint32_t bucket)
{
	unsigned row = bucket >> SKETCH_BITS, shift = row ? row - 1 : 0;
	uint64_t low = bucket & ((1u << SKETCH_BITS) - 1);

	if (!row)
		return low;
	return ((low | 1u << SKETCH_BITS) << shift) + (shift ? UINT64_C(1) << (shift - 1) : 0);
}

#endif
