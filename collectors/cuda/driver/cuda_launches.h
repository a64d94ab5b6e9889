/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sends one launch of device work as events, without CUPTI. collectors/cuda/driver/cuda_events.c
 * records the driver call and times it.
 */
#ifndef TORSH_COLLECTORS_CUDA_DRIVER_CUDA_LAUNCHES_H
#define TORSH_COLLECTORS_CUDA_DRIVER_CUDA_LAUNCHES_H

#include "agent/wire/event.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"

/* A launch, from the return of the driver call until its device time is available. */
struct device_pair {
	struct device_pair *next;
	void *begin, *end; /* events */
	struct driver_work work;
	struct device_location location;
	uint32_t name, registers, static_shared_bytes, local_bytes;
};

/*
 * Query the driver for the name, registers and memory of the work. Its calls are not recorded while
 * it runs.
 */
void torsh_cuda_describe(struct device_pair *pair);

/* Send a launch event for the call, with the stack above frame. result: the driver's. */
void torsh_cuda_send_launch(const struct driver_work *work, int result, const void *frame);

/* Send the device's side of a launch with its times, in nanoseconds of CLOCK_MONOTONIC. */
void torsh_cuda_send_timed(const struct device_pair *pair, uint64_t begin_ns, uint64_t duration_ns);

/* Send the device's side of a launch without times. reason: a label. */
void torsh_cuda_send_untimed(const struct device_pair *pair, uint32_t reason);

/* Add a note to the report if an unrecorded entry point launched work. */
void torsh_cuda_send_unrecorded(void);

uint32_t torsh_cuda_label(const char *text); /* the label of text; 0 for NULL */

#endif
