/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One launch of work on a device without CUPTI, as events. cuda_events.c sees the driver call and
 * times it.
 */
#ifndef TORSH_COLLECTORS_CUDA_DRIVER_CUDA_LAUNCHES_H
#define TORSH_COLLECTORS_CUDA_DRIVER_CUDA_LAUNCHES_H

#include "agent/wire/event.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"

/* A launch, from the return of the driver call until its device time is available. */
struct device_pair {
	struct device_pair *next;
	void *begin, *end; /* marks */
	struct driver_work work;
	struct device_location location;
	uint32_t name, registers, static_shared_bytes, local_bytes;
};

/*
 * Query the driver for the name, registers and memory of the work. Its calls are not recorded while
 * it runs.
 */
void torsh_cuda_describe(struct device_pair *pair);

/*
 * Send a launch event for the call, with the stack above frame. result: what the driver returned.
 */
void torsh_cuda_send_launch(const struct driver_work *work, int result, const void *frame);
void torsh_cuda_send_timed(const struct device_pair *pair, uint64_t begin_ns, uint64_t duration_ns);
void torsh_cuda_send_untimed(const struct device_pair *pair, uint32_t reason);

/* Put a note into the report if a launch was made by an entry point that is not recorded. */
void torsh_cuda_send_unrecorded(void);

uint32_t torsh_cuda_label(const char *text); /* 0 of NULL */

#endif
