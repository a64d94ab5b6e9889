/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions of the CUDA row (collectors/device/device_cuda.c) beyond struct device_ops, for
 * collectors/cuda/driver/cuda_events.c.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_H
#define TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/* The device, context and stream of work, by CUPTI's numbers. */
struct device_location {
	uint32_t device, context, stream;
};

/* The location of the stream in which event was last recorded; all 0 without an event. */
struct device_location torsh_device_cuda_location(void *event, void *stream);

/*
 * The location of the calling thread's current context, without a stream. Returns 0, or -errno if
 * there is none or it is unknown.
 */
int torsh_device_cuda_here(struct device_location *location);

/*
 * The number of a recorded context; NULL: of the device's primary context. 0: not recorded, or
 * destroyed.
 */
uint32_t torsh_device_cuda_number(void *context, int device);

/* Whether the device has an active primary context. */
bool torsh_device_cuda_is_active(int device);

/* Error bounds of times from events. */
struct device_clock {
	uint64_t width_ns; /* the widest bracket around a comparison of the two clocks */
	uint64_t step_ns; /* the largest change between two comparisons */
	uint64_t floor_ns; /* the time between two events with nothing between them, at most */
};

/*
 * When the device reached the event, in nanoseconds of CLOCK_MONOTONIC. Returns 0; -EAGAIN: not
 * reached, or the clocks are not compared yet; or -errno. Once a second it polls an event in a
 * stream of the agent for up to 200 µs.
 */
int torsh_device_cuda_moment(void *event, uint64_t *moment_ns);

/* The error bounds so far. */
struct device_clock torsh_device_cuda_clock(void);

/*
 * The context is destroyed (NULL: all contexts of the device): its events will never be reached.
 * The caller keeps other threads from using them meanwhile.
 */
void torsh_device_cuda_forget(void *context, int device);

/* The name of the CUresult of the last driver call that failed on this thread; NULL: none. */
const char *torsh_device_cuda_problem(void);

#endif
