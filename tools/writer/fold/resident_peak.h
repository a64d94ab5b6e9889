/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When to take a moment of the heap (heap_moments.h) for the time at which most was resident: the
 * resident set is sampled, and a sample that is clearly above the one of the last moment requests
 * another one. It is taken when the heap is folded up to the sample's stamp.
 */
#ifndef TORSH_WRITER_FOLD_RESIDENT_PEAK_H
#define TORSH_WRITER_FOLD_RESIDENT_PEAK_H

#include <stdbool.h>
#include <stdint.h>

/* A sample is clearly above another one by one in so many bytes, or if so many ns lie between. */
#define RESIDENT_PEAK_SHARE 64u
#define RESIDENT_PEAK_NS UINT64_C(1000000000)

#define RESIDENT_PEAK_NONE UINT64_MAX

struct resident_peak {
	uint64_t due_stamp; /* of the sample that waits for its moment; RESIDENT_PEAK_NONE: none */
	uint64_t due_bytes;
	uint64_t kept_bytes, kept_stamp; /* of the last sample that requested a moment */
};

/*
 * Take a sample; gap: RESIDENT_PEAK_NS as stamps. Returns true if its moment is due. A sample that
 * still waits for the heap is replaced, because this one is higher.
 */
static inline bool torsh_resident_peak_sample(struct resident_peak *peak, uint64_t stamp,
					      uint64_t bytes, uint64_t gap)
{
	if (bytes <= peak->kept_bytes ||
	    (bytes - peak->kept_bytes < peak->kept_bytes / RESIDENT_PEAK_SHARE &&
	     stamp - peak->kept_stamp < gap))
		return false;
	*peak = (struct resident_peak){
		.due_stamp = stamp, .due_bytes = bytes, .kept_bytes = bytes, .kept_stamp = stamp};
	return true;
}

#endif
