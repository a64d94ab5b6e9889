/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the CUDA row (collectors/device/device_cuda.c) can say beyond the contract, to
 * collectors/cuda/cuda_events.c.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_H
#define TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_H

#include <stdint.h>

/* Where a stream's work is done. */
struct device_location {
	uint32_t device, context, stream;
};

/* Of the stream to which event was last recorded; without event nothing. */
struct device_location torsh_device_cuda_location(void *event, void *stream);

/*
 * Of the calling thread's current context, with no stream. Returns 0 or -errno: there is none, or
 * it isn't known.
 */
int torsh_device_cuda_here(struct device_location *location);

/*
 * The number of a context that was seen, NULL: the device's primary one; 0: it was not seen, or is
 * not there.
 */
uint32_t torsh_device_cuda_number(void *context, int device);

/* Does the device have a primary context? */
int torsh_device_cuda_is_active(int device);

/* How well a moment is known. */
struct device_clock {
	uint64_t width_ns; /* the widest bracket around a moment that both clocks know */
	uint64_t step_ns; /* the largest change between two of them */
	uint64_t floor_ns; /* what two marks with nothing between them are apart, at most */
};

/*
 * When the mark was reached, in nanoseconds of CLOCK_MONOTONIC. Returns 0, -EAGAIN: not yet, or the
 * two clocks were not yet compared; or -errno. May look for up to 200 µs at a mark in a stream of
 * the agent's own, once a second.
 */
int torsh_device_cuda_moment(void *event, uint64_t *moment_ns);
struct device_clock torsh_device_cuda_clock(void);

/*
 * The context ends (NULL: all of the device): marks in it are never reached. While others use them
 * the caller holds them off.
 */
void torsh_device_cuda_forget(void *context, int device);

/* What the driver calls a result of the last call that failed on this thread; NULL: none did. */
const char *torsh_device_cuda_problem(void);

#endif
