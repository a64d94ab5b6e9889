/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Conversion of CUPTI's timestamps to CLOCK_MONOTONIC. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_CLOCK_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_CLOCK_H

#include <stdint.h>

#include "shim/cuda/cupti.h"

/*
 * Read both clocks if the last reading is old, or always if now is set. Not from a callback in
 * which CUPTI holds its locks.
 */
void torsh_cuda_clock_read(int now);

/*
 * CLOCK_MONOTONIC in nanoseconds, after torsh_cuda_clock_read(0). Not from a callback in which
 * CUPTI holds its locks.
 */
uint64_t torsh_cuda_clock_now(void);

/*
 * Convert a span of CUPTI timestamps to nanoseconds of CLOCK_MONOTONIC. Returns 0, with nothing
 * written, if there is no reading yet or the timestamps belong to another clock.
 */
int torsh_cuda_clock_span(uint64_t start, uint64_t end, uint64_t *begin_ns, uint64_t *duration_ns);

/*
 * Drop all readings: the program registers clock as CUPTI's timestamp function, or has just done
 * so.
 */
void torsh_cuda_clock_change(cupti_clock *clock);

/*
 * The error bounds so far: the widest bracket around a reading, and the largest change of the
 * clocks' distance between two readings.
 */
void torsh_cuda_clock_errors(uint64_t *width_ns, uint64_t *step_ns);

#endif
