/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CLOCK_MONOTONIC from the CPU's time stamp counter. */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_TICKS_H
#define TORSH_COLLECTORS_CUDA_CUDA_TICKS_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds, from the kernel. */
static inline uint64_t torsh_cuda_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * CLOCK_MONOTONIC in nanoseconds, within fractions of a microsecond; a few nanoseconds of work once
 * an anchor is set, the kernel's clock until then.
 */
uint64_t torsh_cuda_now_ns(void);

/* Set the anchor: read both clocks here and now. */
void torsh_cuda_ticks_anchor(void);

#endif
